/** Whatever a client sets is in the target's request, or refused, or listed: removing the field must be visible. */
import { describe, expect, it } from "vitest";
import type { Dialect } from "./dialect.ts";
import { DIALECT_NAMES, translate } from "./translate-fixture.ts";

const schema = { type: "object", properties: {}, additionalProperties: false };
const cached = { type: "ephemeral" };

/** Requests that set every documented field to a value that is not the default. */
const FULL: Readonly<Record<Dialect, Record<string, unknown>>> = {
  chat: {
    messages: [
      { role: "system", content: "S" },
      { role: "user", content: "U" },
    ],
    audio: { voice: "alloy", format: "wav" },
    frequency_penalty: 0.1,
    function_call: "none",
    functions: [{ name: "old" }],
    logit_bias: { 1: 1 },
    logprobs: true,
    max_completion_tokens: 77,
    metadata: { a: "b" },
    modalities: ["text", "audio"],
    moderation: {},
    n: 2,
    parallel_tool_calls: false,
    prediction: { type: "content", content: "P" },
    presence_penalty: 0.2,
    prompt_cache_key: "k",
    prompt_cache_options: {},
    prompt_cache_retention: "24h",
    reasoning_effort: "low",
    response_format: { type: "json_schema", json_schema: { name: "o", schema } },
    safety_identifier: "s",
    seed: 1,
    service_tier: "flex",
    stop: ["X"],
    store: true,
    temperature: 0.3,
    tool_choice: "required",
    tools: [{ type: "function", function: { name: "f", parameters: schema, strict: true } }],
    top_k: 3,
    top_logprobs: 2,
    top_p: 0.4,
    verbosity: "low",
    web_search_options: {},
    extra_field: true,
  },
  messages: {
    messages: [{ role: "user", content: [{ type: "text", text: "U" }] }],
    max_tokens: 77,
    cache_control: cached,
    container: "c",
    context_management: {},
    diagnostics: {},
    inference_geo: "eu",
    mcp_servers: [{}],
    metadata: { user_id: "u" },
    output_config: { format: { type: "json_schema", schema } },
    service_tier: "standard_only",
    speed: "fast",
    stop_sequences: ["X"],
    system: "S",
    temperature: 0.3,
    thinking: { type: "enabled", budget_tokens: 2000 },
    thread: {},
    tool_choice: { type: "none" },
    tools: [
      { name: "f", input_schema: schema },
      { type: "bash_20250124", name: "bash" },
    ],
    top_k: 3,
    top_p: 0.4,
    extra_field: true,
  },
  responses: {
    input: [{ role: "user", content: "U" }],
    background: true,
    client_metadata: {},
    context_management: [],
    conversation: "c",
    image: {},
    include: ["web_search_call.results"],
    instructions: "S",
    max_output_tokens: 77,
    max_tool_calls: 2,
    metadata: { a: "b" },
    moderation: {},
    parallel_tool_calls: false,
    prompt: { id: "p" },
    prompt_cache_key: "k",
    prompt_cache_options: {},
    prompt_cache_retention: "24h",
    reasoning: { effort: "low" },
    safety_identifier: "s",
    service_tier: "flex",
    store: true,
    stream_options: {},
    temperature: 0.3,
    text: { format: { type: "json_schema", name: "o", schema } },
    tool_choice: "required",
    tools: [{ type: "function", name: "f", parameters: schema }, { type: "web_search" }],
    top_logprobs: 2,
    top_p: 0.4,
    truncation: "auto",
    extra_field: true,
  },
  gemini: {
    contents: [{ role: "user", parts: [{ text: "U" }] }],
    systemInstruction: { parts: [{ text: "S" }] },
    generationConfig: {
      maxOutputTokens: 77,
      temperature: 0.3,
      stopSequences: ["X"],
      thinkingConfig: { thinkingBudget: 2000 },
    },
    tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: schema }] }, { googleSearch: {} }],
    toolConfig: { functionCallingConfig: { mode: "NONE" } },
    safetySettings: [{}],
    cachedContent: "c",
    labels: { a: "b" },
    extra_field: true,
  },
};

const pairs = DIALECT_NAMES.flatMap((from) =>
  DIALECT_NAMES.filter((to) => to !== from).map((to) => [from, to] as const),
);

describe.each(pairs)("a request from %s to %s", (from, to) => {
  const full = FULL[from];
  const run = (body: unknown) => {
    const { body: out, dropped } = translate(from, to, body, {
      dropUnsupported: true,
      traits: { sampling: "both" },
    });
    return { out: JSON.stringify(out), dropped: dropped.join() };
  };

  it.each(Object.keys(full).filter((field) => !["messages", "input", "contents"].includes(field)))(
    "shows what became of %s",
    (field) => {
      const { [field]: removed, ...rest } = full;
      expect(removed).toBeDefined();
      expect(run(full)).not.toEqual(run(rest));
    },
  );

  it("refuses it as long as nothing may be left out", () => {
    expect(() => translate(from, to, full)).toThrow(
      expect.objectContaining({ name: "UnsupportedFieldError" }),
    );
  });
});

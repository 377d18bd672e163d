/** Peculiarities of real providers' streams, as documented or seen, in our own words. */
import { describe, expect, it } from "vitest";
import type { Dialect } from "./dialect.ts";
import { createStreamTranslator } from "./index.ts";
import { contextOf, payloads, sse, translateStream } from "./translate-fixture.ts";

const chunk = (delta: unknown, finish_reason: string | null = null, more = {}) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason, logprobs: null }],
  ...more,
});
const run = (from: Dialect, to: Dialect, events: readonly unknown[], named = false) =>
  payloads(translateStream(contextOf(from, to, { stream: true }), sse(events, named)));
const messageEnd = [
  {
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 9 },
  },
  { type: "message_stop" },
];
const start = (index: number, content_block: unknown) => ({
  type: "content_block_start",
  index,
  content_block,
});
const delta = (index: number, inner: unknown) => ({ type: "content_block_delta", index, delta: inner });
const stop = (index: number) => ({ type: "content_block_stop", index });
const contentOf = (events: readonly Record<string, unknown>[]) =>
  events
    .flatMap((event) => (event["choices"] as { delta: { content?: string } }[] | undefined) ?? [])
    .map((choice) => choice.delta.content ?? "")
    .join("");

describe("chat streams", () => {
  it("with an empty first chunk of a content filter, and obfuscation", () => {
    const filter = { id: "", object: "", created: 0, model: "", choices: [], prompt_filter_results: [{}] };
    const events = run("messages", "chat", [
      filter,
      chunk({ content: "Hi" }, null, { obfuscation: "xx" }),
      chunk({}, "stop"),
      "[DONE]",
    ]);
    expect(events.filter((event) => event["type"] === "content_block_delta")).toMatchObject([
      { delta: { text: "Hi" } },
    ]);
  });

  it("with reasoning details in pieces and a signature at the end", () => {
    const detail = (more: object) => ({
      type: "reasoning.text",
      format: "anthropic-claude-v1",
      index: 0,
      ...more,
    });
    const events = run("messages", "chat", [
      chunk({ reasoning: "Let ", reasoning_details: [detail({ text: "Let " })] }),
      chunk({ reasoning: "me", reasoning_details: [detail({ text: "me" })] }),
      chunk({ reasoning_details: [detail({ signature: "SIG" })] }),
      chunk({ content: "Yes" }, "stop"),
      "[DONE]",
    ]);
    expect(
      events.filter((event) => event["type"] === "content_block_delta").map((event) => event["delta"]),
    ).toEqual([
      { type: "thinking_delta", thinking: "Let " },
      { type: "thinking_delta", thinking: "me" },
      { type: "signature_delta", signature: "SIG" },
      { type: "text_delta", text: "Yes" },
    ]);
  });

  it("with an error in the middle", () => {
    const events = run("responses", "chat", [
      chunk({ content: "Hi" }),
      { error: { code: 502, message: "Provider down" } },
    ]);
    expect(events.at(-1)).toMatchObject({ type: "error", message: "Provider down" });
  });

  it("with usage in the last content chunk, and a refusal", () => {
    const usage = { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 };
    const events = run("messages", "chat", [
      chunk({ refusal: "I will " }),
      chunk({ refusal: "not." }, "stop", { usage }),
      "[DONE]",
    ]);
    expect(events.filter((event) => event["type"] === "content_block_start")).toHaveLength(1);
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: "refusal" },
      usage: { input_tokens: 4, output_tokens: 2 },
    });
  });

  it("with a call whose name comes after its id", () => {
    const call = (more: object) => chunk({ tool_calls: [{ index: 0, ...more }] });
    const events = run("messages", "chat", [
      call({ id: "a", type: "function", function: { arguments: "" } }),
      call({ function: { name: "f", arguments: '{"x":' } }),
      call({ function: { arguments: "1}" } }),
      chunk({}, "tool_calls"),
      "[DONE]",
    ]);
    expect(events.find((event) => event["type"] === "content_block_start")).toMatchObject({
      content_block: { id: "a", name: "f" },
    });
  });
});

describe("messages streams", () => {
  it("with a tool that the provider ran, and citations", () => {
    const citation = {
      type: "web_search_result_location",
      url: "https://a.example",
      title: "A",
      cited_text: "q",
      encrypted_index: "e",
    };
    const events = run(
      "chat",
      "messages",
      [
        start(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
        delta(0, { type: "input_json_delta", partial_json: '{"query":"x"}' }),
        stop(0),
        start(1, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
        stop(1),
        start(2, { type: "text", text: "" }),
        delta(2, { type: "citations_delta", citation }),
        delta(2, { type: "text_delta", text: "Found." }),
        stop(2),
        ...messageEnd,
      ],
      true,
    );
    expect(contentOf(events)).toBe("Found.");
    expect(JSON.stringify(events)).not.toContain("srvtoolu_1");
    expect(JSON.stringify(events)).toContain('"url":"https://a.example"');
  });

  it("with redacted thinking", () => {
    const upstream = [
      start(0, { type: "redacted_thinking", data: "RED" }),
      stop(0),
      start(1, { type: "text", text: "" }),
      delta(1, { type: "text_delta", text: "Ok" }),
      stop(1),
      ...messageEnd,
    ];
    const events = run("responses", "messages", upstream, true);
    expect(events.at(-1)).toMatchObject({
      response: {
        output: [{ type: "reasoning", encrypted_content: "messages-redacted::RED" }, { type: "message" }],
      },
    });
    expect(JSON.stringify(run("chat", "messages", upstream, true))).toContain(
      '"type":"reasoning.encrypted","data":"RED","format":"anthropic-claude-v1"',
    );
  });

  it("with usage only in the parts that changed", () => {
    const translator = createStreamTranslator(contextOf("chat", "messages", { stream: true }));
    const usage = {
      input_tokens: 5,
      cache_read_input_tokens: 50,
      cache_creation_input_tokens: 500,
      output_tokens: 1,
    };
    const message = { id: "m", model: "claude", usage };
    translator.write(
      new TextEncoder().encode(sse([{ type: "message_start", message }, ...messageEnd], true)),
    );
    expect(translator.usage).toMatchObject({
      inputTokens: 555,
      outputTokens: 9,
      cacheReadTokens: 50,
      cacheWriteTokens: 500,
    });
  });
});

describe("responses streams", () => {
  it("with a summary in several parts", () => {
    const part = (summary_index: number) => ({
      type: "response.reasoning_summary_part.added",
      output_index: 0,
      summary_index,
    });
    const text = (summary_index: number, value: string) => ({
      type: "response.reasoning_summary_text.delta",
      output_index: 0,
      summary_index,
      delta: value,
    });
    const events = run(
      "messages",
      "responses",
      [
        {
          type: "response.output_item.added",
          output_index: 0,
          item: { type: "reasoning", id: "rs_1", summary: [] },
        },
        part(0),
        text(0, "One"),
        part(1),
        text(1, "Two"),
        {
          type: "response.output_item.done",
          output_index: 0,
          item: { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "E" },
        },
        {
          type: "response.incomplete",
          response: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
        },
      ],
      true,
    );
    const deltas = events
      .filter((event) => event["type"] === "content_block_delta")
      .map((event) => event["delta"]);
    expect(deltas.map((value) => (value as { thinking?: string }).thinking ?? "").join("")).toBe(
      "One\n\nTwo",
    );
    expect(deltas.at(-1)).toEqual({ type: "signature_delta", signature: "responses:rs_1:E" });
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: "max_tokens" } });
  });

  it("that fail", () => {
    const failed = {
      type: "response.failed",
      response: { status: "failed", error: { code: "server_error", message: "Broken" } },
    };
    expect(run("messages", "responses", [failed], true).at(-1)).toMatchObject({
      type: "error",
      error: { message: "Broken" },
    });
  });
});

describe("Gemini streams", () => {
  const part = (parts: unknown[], more = {}) => ({
    candidates: [{ content: { parts, role: "model" }, index: 0, ...more }],
  });

  it("with a signature on the last, empty text", () => {
    const upstream = [
      part([{ text: "Hi" }]),
      part([{ text: "", thoughtSignature: "G" }], { finishReason: "STOP" }),
    ];
    const events = run("messages", "gemini", upstream);
    expect(
      events
        .filter((event) => event["type"] === "content_block_start")
        .map((event) => (event["content_block"] as { type: string }).type),
    ).toEqual(["text", "thinking"]);
    expect(JSON.stringify(events)).toContain('"signature":"gemini::G"');
    expect(JSON.stringify(run("chat", "gemini", upstream))).toContain(
      '"data":"G","format":"google-gemini-v1"',
    );
  });

  it("with code that the provider ran, and grounding", () => {
    const grounding = {
      groundingChunks: [{ web: { uri: "https://a.example", title: "A" } }],
      groundingSupports: [{ segment: { text: "Hi" }, groundingChunkIndices: [0] }],
    };
    const events = run("chat", "gemini", [
      part([
        { executableCode: { language: "PYTHON", code: "1" } },
        { codeExecutionResult: { outcome: "OUTCOME_OK" } },
      ]),
      part([{ text: "Hi" }], { finishReason: "STOP", groundingMetadata: grounding }),
    ]);
    expect(contentOf(events)).toBe("Hi");
    expect(JSON.stringify(events)).toContain("https://a.example");
  });

  it("with a blocked prompt", () => {
    const events = run("chat", "gemini", [
      { promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: { promptTokenCount: 3 } },
    ]);
    expect(events.at(-2)).toMatchObject({ choices: [{ finish_reason: "content_filter" }] });
  });
});

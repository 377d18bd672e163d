/** Requests of about 2 KB and streams for the benchmark `translate`. */
import type { Dialect } from "../../packages/translate/src/index.ts";
import { UPSTREAM_STREAMS } from "../../packages/translate/src/upstream-streams-fixture.ts";

const PARAGRAPH =
  "The relay keeps one connection per provider open and sends each request as soon as its body is complete. ".repeat(
    4,
  );
const schema = {
  type: "object",
  properties: {
    path: { type: "string", description: "Path of the file, relative to the root of the project" },
    limit: { type: "integer", description: "Lines to read at most" },
  },
  required: ["path"],
  additionalProperties: false,
};
const description = "Reads a file of the project and returns its lines with numbers.";
const args = { path: "src/index.ts", limit: 200 };

export const REQUESTS: Readonly<Record<Dialect, Record<string, unknown>>> = {
  chat: {
    model: "anthropic/some-model",
    messages: [
      { role: "system", content: PARAGRAPH },
      { role: "user", content: PARAGRAPH },
      {
        role: "assistant",
        content: "I read the file.",
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "read", arguments: JSON.stringify(args) } },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: PARAGRAPH },
      { role: "user", content: "What does it export?" },
    ],
    tools: [{ type: "function", function: { name: "read", description, parameters: schema } }],
    tool_choice: "auto",
    max_tokens: 1000,
    temperature: 0.2,
  },
  messages: {
    model: "openai/some-model",
    max_tokens: 1000,
    system: [{ type: "text", text: PARAGRAPH, cache_control: { type: "ephemeral" } }],
    messages: [
      { role: "user", content: PARAGRAPH },
      {
        role: "assistant",
        content: [
          { type: "text", text: "I read the file." },
          { type: "tool_use", id: "toolu_1", name: "read", input: args },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: PARAGRAPH },
          { type: "text", text: "What does it export?" },
        ],
      },
    ],
    tools: [{ name: "read", description, input_schema: schema }],
  },
  responses: {
    model: "anthropic/some-model",
    instructions: PARAGRAPH,
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: PARAGRAPH }] },
      { type: "function_call", call_id: "call_1", name: "read", arguments: JSON.stringify(args) },
      { type: "function_call_output", call_id: "call_1", output: PARAGRAPH },
      { type: "message", role: "user", content: [{ type: "input_text", text: "What does it export?" }] },
    ],
    tools: [{ type: "function", name: "read", description, parameters: schema, strict: false }],
    store: false,
    max_output_tokens: 1000,
  },
  gemini: { contents: [{ role: "user", parts: [{ text: PARAGRAPH }] }] },
};

/** The mark of the delta that is repeated. */
const REPEATED = "Grüße ";

/** A stream with `count` deltas of text, as its single events. */
export function streamOf(dialect: Dialect, count: number): string[] {
  return UPSTREAM_STREAMS[dialect]
    .split(/(?<=\n\n)/)
    .flatMap((event) =>
      event.includes(REPEATED) && !event.includes("done")
        ? Array.from({ length: count }, () => event.replace(REPEATED, "about one word of text "))
        : [event],
    );
}

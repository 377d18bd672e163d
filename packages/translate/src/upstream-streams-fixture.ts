/** One answer as the four providers stream it: reasoning, text, and two parallel calls. In our own words after the documentation. */
import type { Dialect } from "./dialect.ts";
import { sse } from "./translate-fixture.ts";

const chunk = (delta: unknown, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 5,
  model: "gpt-x",
  choices: [{ index: 0, delta, finish_reason }],
});
const toolDelta = (index: number, text: string) =>
  chunk({ tool_calls: [{ index, function: { arguments: text } }] });
const toolStart = (index: number, id: string) =>
  chunk({ tool_calls: [{ index, id, type: "function", function: { name: "weather", arguments: "" } }] });

const CHAT = [
  chunk({ role: "assistant", content: "" }),
  chunk({ reasoning_content: "Let me " }),
  chunk({ reasoning_content: "think ✓" }),
  chunk({ content: "Grüße " }),
  chunk({ content: "aus 北京 😀" }),
  toolStart(0, "call_a"),
  toolStart(1, "call_b"),
  toolDelta(0, '{"city":'),
  toolDelta(1, '{"city":"Rom'),
  toolDelta(0, '"Bern"}'),
  toolDelta(1, 'a"}'),
  chunk({}, "tool_calls"),
  {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 5,
    model: "gpt-x",
    choices: [],
    usage: {
      prompt_tokens: 30,
      completion_tokens: 20,
      total_tokens: 50,
      prompt_tokens_details: { cached_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 4 },
    },
  },
  "[DONE]",
];

const blockDelta = (index: number, delta: unknown) => ({ type: "content_block_delta", index, delta });
const blockStart = (index: number, content_block: unknown) => ({
  type: "content_block_start",
  index,
  content_block,
});
const blockStop = (index: number) => ({ type: "content_block_stop", index });
const toolUse = (id: string) => ({ type: "tool_use", id, name: "weather", input: {} });
const json = (partial_json: string) => ({ type: "input_json_delta", partial_json });

const MESSAGES = [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-x",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: 20,
        cache_read_input_tokens: 10,
        cache_creation_input_tokens: 0,
        output_tokens: 1,
      },
    },
  },
  { type: "ping" },
  blockStart(0, { type: "thinking", thinking: "", signature: "" }),
  blockDelta(0, { type: "thinking_delta", thinking: "Let me " }),
  blockDelta(0, { type: "thinking_delta", thinking: "think ✓" }),
  blockDelta(0, { type: "signature_delta", signature: "SIG" }),
  blockStop(0),
  blockStart(1, { type: "text", text: "" }),
  blockDelta(1, { type: "text_delta", text: "Grüße " }),
  blockDelta(1, { type: "text_delta", text: "aus 北京 😀" }),
  blockStop(1),
  blockStart(2, toolUse("call_a")),
  blockDelta(2, json("")),
  blockDelta(2, json('{"city":')),
  blockDelta(2, json('"Bern"}')),
  blockStop(2),
  blockStart(3, toolUse("call_b")),
  blockDelta(3, json('{"city":"Roma"}')),
  blockStop(3),
  {
    type: "message_delta",
    delta: { stop_reason: "tool_use", stop_sequence: null },
    usage: { output_tokens: 20, output_tokens_details: { thinking_tokens: 4 } },
  },
  { type: "message_stop" },
];

const item = (id: string, call_id: string, text: string) => ({
  id,
  type: "function_call",
  call_id,
  name: "weather",
  arguments: text,
});
const args = (output_index: number, delta: string) => ({
  type: "response.function_call_arguments.delta",
  output_index,
  item_id: "x",
  delta,
});
const reasoning = {
  id: "rs_1",
  type: "reasoning",
  summary: [{ type: "summary_text", text: "Let me think ✓" }],
  encrypted_content: "ENC",
};

const RESPONSES = [
  {
    type: "response.created",
    response: { id: "resp_1", created_at: 5, model: "gpt-x", status: "in_progress", output: [] },
  },
  { type: "response.in_progress", response: { id: "resp_1" } },
  {
    type: "response.output_item.added",
    output_index: 0,
    item: { id: "rs_1", type: "reasoning", summary: [] },
  },
  {
    type: "response.reasoning_summary_part.added",
    output_index: 0,
    item_id: "rs_1",
    summary_index: 0,
    part: { type: "summary_text", text: "" },
  },
  {
    type: "response.reasoning_summary_text.delta",
    output_index: 0,
    item_id: "rs_1",
    summary_index: 0,
    delta: "Let me ",
  },
  {
    type: "response.reasoning_summary_text.delta",
    output_index: 0,
    item_id: "rs_1",
    summary_index: 0,
    delta: "think ✓",
  },
  { type: "response.output_item.done", output_index: 0, item: reasoning },
  {
    type: "response.output_item.added",
    output_index: 1,
    item: { id: "msg_1", type: "message", role: "assistant", content: [] },
  },
  {
    type: "response.content_part.added",
    output_index: 1,
    item_id: "msg_1",
    content_index: 0,
    part: { type: "output_text", text: "" },
  },
  {
    type: "response.output_text.delta",
    output_index: 1,
    item_id: "msg_1",
    content_index: 0,
    delta: "Grüße ",
  },
  {
    type: "response.output_text.delta",
    output_index: 1,
    item_id: "msg_1",
    content_index: 0,
    delta: "aus 北京 😀",
  },
  {
    type: "response.output_text.done",
    output_index: 1,
    item_id: "msg_1",
    content_index: 0,
    text: "Grüße aus 北京 😀",
  },
  {
    type: "response.output_item.done",
    output_index: 1,
    item: { id: "msg_1", type: "message", role: "assistant", content: [] },
  },
  { type: "response.output_item.added", output_index: 2, item: item("fc_1", "call_a", "") },
  args(2, '{"city":'),
  args(2, '"Bern"}'),
  { type: "response.output_item.done", output_index: 2, item: item("fc_1", "call_a", '{"city":"Bern"}') },
  { type: "response.output_item.added", output_index: 3, item: item("fc_2", "call_b", "") },
  { type: "response.output_item.done", output_index: 3, item: item("fc_2", "call_b", '{"city":"Roma"}') },
  {
    type: "response.completed",
    response: {
      id: "resp_1",
      status: "completed",
      usage: {
        input_tokens: 30,
        input_tokens_details: { cached_tokens: 10 },
        output_tokens: 20,
        output_tokens_details: { reasoning_tokens: 4 },
        total_tokens: 50,
      },
    },
  },
];

const part = (parts: unknown[], more = {}) => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
  modelVersion: "gemini-x",
  responseId: "r1",
});

const GEMINI = [
  part([{ text: "Let me ", thought: true }]),
  part([{ text: "think ✓", thought: true }]),
  part([{ text: "Grüße " }]),
  part([{ text: "aus 北京 😀" }]),
  part([
    { functionCall: { id: "call_a", name: "weather", args: { city: "Bern" } }, thoughtSignature: "GSIG" },
    { functionCall: { id: "call_b", name: "weather", args: { city: "Roma" } } },
  ]),
  {
    ...part([{ text: "" }], { finishReason: "STOP" }),
    usageMetadata: {
      promptTokenCount: 30,
      cachedContentTokenCount: 10,
      candidatesTokenCount: 16,
      thoughtsTokenCount: 4,
      totalTokenCount: 50,
    },
  },
];

export const UPSTREAM_STREAMS: Readonly<Record<Dialect, string>> = {
  chat: sse(CHAT),
  messages: sse(MESSAGES, true),
  responses: sse(RESPONSES, true),
  gemini: sse(GEMINI),
};

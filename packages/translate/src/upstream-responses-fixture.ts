/** The answer of the streams beside this file as the four providers give it whole. */
import type { Dialect } from "./dialect.ts";

const TEXT = "Grüße aus 北京 😀";
const call = (id: string, city: string) => ({
  id,
  type: "function",
  function: { name: "weather", arguments: JSON.stringify({ city }) },
});
const item = (call_id: string, city: string) => ({
  type: "function_call",
  id: `fc_${call_id}`,
  call_id,
  name: "weather",
  arguments: JSON.stringify({ city }),
  status: "completed",
});

export const UPSTREAM_RESPONSES: Readonly<Record<Dialect, Record<string, unknown>>> = {
  chat: {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 5,
    model: "gpt-x",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: TEXT,
          refusal: null,
          reasoning_content: "Let me think ✓",
          tool_calls: [call("call_a", "Bern"), call("call_b", "Roma")],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: {
      prompt_tokens: 30,
      completion_tokens: 20,
      total_tokens: 50,
      prompt_tokens_details: { cached_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 4 },
    },
  },
  messages: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-x",
    content: [
      { type: "thinking", thinking: "Let me think ✓", signature: "SIG" },
      { type: "text", text: TEXT },
      { type: "tool_use", id: "call_a", name: "weather", input: { city: "Bern" } },
      { type: "tool_use", id: "call_b", name: "weather", input: { city: "Roma" } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: {
      input_tokens: 20,
      cache_read_input_tokens: 10,
      cache_creation_input_tokens: 0,
      output_tokens: 20,
      output_tokens_details: { thinking_tokens: 4 },
    },
  },
  responses: {
    id: "resp_1",
    object: "response",
    created_at: 5,
    model: "gpt-x",
    status: "completed",
    output: [
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "Let me think ✓" }],
        encrypted_content: "ENC",
      },
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: TEXT, annotations: [] }],
      },
      item("call_a", "Bern"),
      item("call_b", "Roma"),
    ],
    usage: {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 10 },
      output_tokens: 20,
      output_tokens_details: { reasoning_tokens: 4 },
      total_tokens: 50,
    },
  },
  gemini: {
    candidates: [
      {
        content: {
          role: "model",
          parts: [
            { text: "Let me think ✓", thought: true },
            { text: TEXT },
            {
              functionCall: { id: "call_a", name: "weather", args: { city: "Bern" } },
              thoughtSignature: "GSIG",
            },
            { functionCall: { id: "call_b", name: "weather", args: { city: "Roma" } } },
          ],
        },
        finishReason: "STOP",
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: 30,
      cachedContentTokenCount: 10,
      candidatesTokenCount: 16,
      thoughtsTokenCount: 4,
      totalTokenCount: 50,
    },
    modelVersion: "gemini-x",
    responseId: "r1",
  },
};

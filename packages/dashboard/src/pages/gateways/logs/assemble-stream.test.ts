import { describe, expect, it } from "vitest";
import { assembleStream } from "./assemble-stream.ts";

const stream = (...events: unknown[]) =>
  events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");

describe("assembleStream", () => {
  it("assembles OpenAI chat completion chunks, including tool calls", () => {
    const body = stream(
      { choices: [{ delta: { role: "assistant", content: "Hel" } }] },
      { choices: [{ delta: { content: "lo" } }] },
      { choices: [{ delta: { tool_calls: [{ index: 0, function: { name: "look", arguments: '{"a"' } }] } }] },
      {
        choices: [
          { delta: { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }, finish_reason: "stop" },
        ],
      },
      { choices: [], usage: { total_tokens: 4 } },
      "[DONE]",
    );
    expect(assembleStream(body)).toEqual({
      text: "Hello",
      reasoning: "",
      toolCalls: [{ name: "look", arguments: '{"a":1}' }],
      finishReason: "stop",
      events: 5,
    });
  });

  it("assembles Anthropic content blocks and separates the thinking", () => {
    const body = stream(
      { type: "content_block_start", index: 0, content_block: { type: "thinking" } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Yes" } },
      { type: "content_block_start", index: 2, content_block: { type: "tool_use", name: "go" } },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: "{}" } },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
    );
    expect(assembleStream(body)).toMatchObject({
      text: "Yes",
      reasoning: "hm",
      toolCalls: [{ name: "go", arguments: "{}" }],
      finishReason: "end_turn",
    });
  });

  it("assembles OpenAI Responses events and Gemini candidates", () => {
    expect(
      assembleStream(
        stream(
          { type: "response.output_text.delta", delta: "a" },
          { type: "response.output_text.delta", delta: "b" },
          { type: "response.completed", response: { status: "completed" } },
        ),
      ),
    ).toMatchObject({ text: "ab", finishReason: "completed" });
    expect(
      assembleStream(
        stream({ candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: "STOP" }] }),
      ),
    ).toMatchObject({ text: "hi", finishReason: "STOP" });
  });

  it("ignores a truncated last event, and returns null for a body without events", () => {
    expect(assembleStream('data: {"choices":[{"delta":{"content":"par"}}]}\n\ndata: {"choi')).toMatchObject({
      text: "par",
      events: 1,
    });
    expect(assembleStream('{"choices":[]}')).toBeNull();
  });
});

import { expect, it } from "vitest";
import { errorMessage, requestMessages, responseMessages } from "./message-parts.ts";

const PIXEL = "iVBORw0KGgo=";

it("reads texts, images and tool results of requests in all dialects", () => {
  const chat = requestMessages(
    JSON.stringify({
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
          ],
        },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ function: { name: "look", arguments: '{"x":1}' } }],
        },
        { role: "tool", tool_call_id: "call_1", content: '{"found":true}' },
      ],
    }),
  );
  expect(chat.map(({ role, parts }) => [role, ...parts.map(({ kind }) => kind)])).toEqual([
    ["system", "text"],
    ["user", "text", "image"],
    ["assistant", "tool-call"],
    ["tool", "tool-result"],
  ]);
  expect(chat[2]?.parts[0]).toEqual({ kind: "tool-call", name: "look", input: { x: 1 } });
  expect(chat[3]?.parts[0]).toEqual({ kind: "tool-result", name: "call_1", output: { found: true } });

  const messages = requestMessages(
    JSON.stringify({
      system: [{ type: "text", text: "Be brief." }],
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
            { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "plain" }] },
          ],
        },
      ],
    }),
  );
  expect(messages[1]?.parts).toEqual([
    { kind: "image", address: `data:image/png;base64,${PIXEL}` },
    { kind: "tool-result", name: "t1", output: "plain" },
  ]);

  const responses = requestMessages(
    JSON.stringify({
      instructions: "Be brief.",
      input: [
        { role: "user", content: [{ type: "input_text", text: "Hi" }] },
        { type: "function_call", name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "done" },
      ],
    }),
  );
  expect(responses.map(({ role, parts }) => [role, parts[0]?.kind])).toEqual([
    ["system", "text"],
    ["user", "text"],
    ["assistant", "tool-call"],
    ["tool", "tool-result"],
  ]);

  const gemini = requestMessages(
    JSON.stringify({
      contents: [{ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: PIXEL } }] }],
    }),
  );
  expect(gemini[0]?.parts[0]).toEqual({ kind: "image", address: `data:image/png;base64,${PIXEL}` });
});

it("reads answers with reasoning, tool calls and images", () => {
  const kinds = (body: object) =>
    responseMessages(JSON.stringify(body)).flatMap(({ parts }) => parts.map(({ kind }) => kind));
  expect(
    kinds({ choices: [{ message: { role: "assistant", content: "Hi", reasoning_content: "Hm" } }] }),
  ).toEqual(["reasoning", "text"]);
  expect(
    kinds({
      type: "message",
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm" },
        { type: "tool_use", name: "a", input: {} },
      ],
    }),
  ).toEqual(["reasoning", "tool-call"]);
  expect(kinds({ output: [{ type: "function_call", name: "a", arguments: "{}" }] })).toEqual(["tool-call"]);
  expect(
    kinds({
      candidates: [{ content: { parts: [{ text: "Hi" }, { functionCall: { name: "a", args: {} } }] } }],
    }),
  ).toEqual(["text", "tool-call"]);
  expect(kinds({ data: [{ b64_json: PIXEL }] })).toEqual(["image"]);
  expect(kinds({ data: [{ embedding: [1, 2] }] })).toEqual([]);
  expect(responseMessages("not json")).toEqual([]);
});

it.each([
  ['{"error":{"message":"No credit"}}', "No credit"],
  ['{"success":false,"errors":[{"code":2001,"message":"Not found"}]}', "Not found"],
  ['[{"error":"x","message":"In a list"}]', "In a list"],
  ['{"detail":"Bad model"}', "Bad model"],
  ['{"error":"plain"}', "plain"],
  ["<html>", null],
])("finds the message of the error %s", (body, message) => expect(errorMessage(body)).toBe(message));

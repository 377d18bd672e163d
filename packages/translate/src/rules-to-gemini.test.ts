/** Rules of the ways to Gemini. Each stands for a defect seen in another translator. */
import { describe, expect, it } from "vitest";
import { InvalidRequestError, translateResponse } from "./index.ts";
import { contextOf, translate } from "./translate-fixture.ts";

const user = { role: "user", content: "Hi" };
const tool = {
  type: "function",
  function: { name: "weather", parameters: { type: "object", properties: {}, additionalProperties: false } },
};
const call = (id: string, extra = {}) => ({
  id,
  type: "function",
  function: { name: "weather", arguments: '{"city":"Bern"}' },
  ...extra,
});
const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "sun" });

function encode(body: Record<string, unknown>, given = {}) {
  return translate("chat", "gemini", { model: "m", messages: [user], ...body }, given);
}

describe("a chat request for Gemini", () => {
  it("looks up the name of a function response by its id", () => {
    const messages = [
      user,
      { role: "assistant", tool_calls: [call("c1"), call("c2")] },
      result("c2"),
      result("c1"),
    ];
    expect(encode({ messages }).body["contents"]).toEqual([
      { role: "user", parts: [{ text: "Hi" }] },
      {
        role: "model",
        parts: [
          { functionCall: { id: "c1", name: "weather", args: { city: "Bern" } } },
          { functionCall: { id: "c2", name: "weather", args: { city: "Bern" } } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "c2", name: "weather", response: { output: "sun" } } },
          { functionResponse: { id: "c1", name: "weather", response: { output: "sun" } } },
        ],
      },
    ]);
  });

  it("refuses a result without its call, because the name is unknown", () => {
    expect(() => encode({ messages: [user, result("c9")] })).toThrow(InvalidRequestError);
  });

  it("sends schemas as JSON Schema, unchanged", () => {
    const schema = {
      type: "object",
      properties: { a: { $ref: "#/$defs/a" } },
      $defs: { a: { type: ["string", "null"] } },
    };
    const { body } = encode({
      tools: [{ type: "function", function: { name: "f", parameters: schema } }],
      response_format: { type: "json_schema", json_schema: { name: "o", schema } },
    });
    expect(body["tools"]).toEqual([{ functionDeclarations: [{ name: "f", parametersJsonSchema: schema }] }]);
    expect(body["generationConfig"]).toEqual({
      responseMimeType: "application/json",
      responseJsonSchema: schema,
    });
  });

  it("merges adjacent roles and puts system texts into the instruction", () => {
    const { body } = encode({ messages: [{ role: "system", content: "S" }, user, user] });
    expect(body).toEqual({
      systemInstruction: { parts: [{ text: "S" }] },
      contents: [{ role: "user", parts: [{ text: "Hi" }, { text: "Hi" }] }],
    });
  });

  it.each([
    ["required", { mode: "ANY" }],
    ["none", { mode: "NONE" }],
    ["auto", { mode: "AUTO" }],
    [
      { type: "function", function: { name: "weather" } },
      { mode: "ANY", allowedFunctionNames: ["weather"] },
    ],
  ])("translates tool_choice %j", (choice, expected) => {
    expect(encode({ tools: [tool], tool_choice: choice }).body["toolConfig"]).toEqual({
      functionCallingConfig: expected,
    });
  });

  it("gives a budget or a level of thinking, as the model takes it", () => {
    const thinking = (model: string) =>
      (encode({ reasoning_effort: "medium" }, { model }).body["generationConfig"] as Record<string, unknown>)[
        "thinkingConfig"
      ];
    expect(thinking("gemini-2.5-flash")).toEqual({ thinkingBudget: 8192 });
    expect(thinking("gemini-3-pro")).toEqual({ thinkingLevel: "MEDIUM" });
    expect(encode({ reasoning_effort: "low" }, { model: "gemini-2.0-flash" }).dropped).toEqual([
      "reasoning_effort",
    ]);
  });
});

describe("thought signatures", () => {
  const upstream = {
    candidates: [
      {
        content: {
          role: "model",
          parts: [
            { text: "Considering", thought: true },
            { functionCall: { name: "weather", args: { city: "Bern" } }, thoughtSignature: "SIG1" },
            { functionCall: { name: "weather", args: { city: "Rome" } } },
          ],
        },
        finishReason: "STOP",
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: 5,
      candidatesTokenCount: 7,
      thoughtsTokenCount: 3,
      totalTokenCount: 15,
    },
  };

  it("come back on the calls of chat clients", () => {
    const response = translateResponse(contextOf("chat", "gemini"), upstream);
    const [choice] = response["choices"] as { message: Record<string, unknown> }[];
    expect(choice?.message["tool_calls"]).toMatchObject([
      { id: "call_new1", extra_content: { google: { thought_signature: "SIG1" } } },
      { id: "call_new2" },
    ]);
    const { body } = encode({ messages: [user, choice?.message, result("call_new1"), result("call_new2")] });
    const contents = body["contents"] as { parts: Record<string, unknown>[] }[];
    expect(contents[1]?.parts.map((part) => part["thoughtSignature"])).toEqual([
      undefined,
      "SIG1",
      undefined,
    ]);
  });

  it("come back in a thinking block of messages clients", () => {
    const response = translateResponse(contextOf("messages", "gemini"), upstream);
    expect(response["content"]).toMatchObject([
      { type: "thinking", thinking: "Considering", signature: "" },
      { type: "thinking", thinking: "", signature: "gemini::SIG1" },
      { type: "tool_use", id: "call_new1" },
      { type: "tool_use", id: "call_new2" },
    ]);
    const messages = [user, { role: "assistant", content: response["content"] }];
    const { body } = translate("messages", "gemini", { model: "m", max_tokens: 9, messages });
    expect((body["contents"] as { parts: unknown[] }[])[1]?.parts).toEqual([
      { text: "Considering", thought: true },
      {
        functionCall: { id: "call_new1", name: "weather", args: { city: "Bern" } },
        thoughtSignature: "SIG1",
      },
      { functionCall: { id: "call_new2", name: "weather", args: { city: "Rome" } } },
    ]);
  });

  it("come back in a reasoning item of responses clients", () => {
    const response = translateResponse(contextOf("responses", "gemini"), upstream);
    const { body } = translate("responses", "gemini", {
      model: "m",
      input: [user, ...(response["output"] as unknown[])],
    });
    const contents = body["contents"] as { parts: Record<string, unknown>[] }[];
    expect(contents[1]?.parts.map((part) => part["thoughtSignature"])).toEqual([
      undefined,
      "SIG1",
      undefined,
    ]);
  });

  it("of other providers are never sent to Gemini", () => {
    const content = [
      { type: "thinking", thinking: "Hmm", signature: "CLAUDE" },
      { type: "tool_use", id: "a", name: "weather", input: {} },
    ];
    const request = { model: "m", max_tokens: 9, messages: [user, { role: "assistant", content }] };
    const older = translate("messages", "gemini", request);
    expect(JSON.stringify(older.body)).not.toContain("CLAUDE");
    expect(older.dropped).toEqual(["messages[].reasoning"]);
    const newer = translate("messages", "gemini", request, { model: "gemini-3-pro" });
    expect((newer.body["contents"] as { parts: unknown[] }[])[1]?.parts).toEqual([
      {
        functionCall: { id: "a", name: "weather", args: {} },
        thoughtSignature: "skip_thought_signature_validator",
      },
    ]);
  });
});

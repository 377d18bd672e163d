/** Rules of the way from chat completions to messages. Each stands for a defect seen in another translator. */
import { describe, expect, it } from "vitest";
import { translate } from "./translate-fixture.ts";

const user = { role: "user", content: "Hi" };
const weather = {
  type: "function",
  function: {
    name: "weather",
    description: "Weather",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};
const call = (id: string, args: string) => ({
  id,
  type: "function",
  function: { name: "weather", arguments: args },
});

function encode(body: Record<string, unknown>, given = {}) {
  return translate("chat", "messages", { model: "m", messages: [user], ...body }, given).body;
}

describe("messages of a chat request for the messages dialect", () => {
  it("puts leading system and developer messages into system blocks", () => {
    const body = encode({
      messages: [{ role: "system", content: "A" }, { role: "developer", content: "B" }, user],
    });
    expect(body["system"]).toEqual([
      { type: "text", text: "A" },
      { type: "text", text: "B" },
    ]);
    expect(body["messages"]).toEqual([user]);
  });

  it("keeps a later system message in its place, as a user text for models that take no other, and lists it", () => {
    const messages = [user, { role: "assistant", content: "Yes" }, { role: "system", content: "Be brief" }];
    const { body, dropped } = translate("chat", "messages", { model: "m", messages });
    expect(body["messages"]).toEqual([
      user,
      { role: "assistant", content: "Yes" },
      { role: "user", content: "Be brief" },
    ]);
    expect(dropped).toEqual(["messages[].role"]);
    const newer = translate("chat", "messages", { model: "m", messages }, { model: "claude-opus-5" });
    expect(newer.body["messages"]).toEqual([
      user,
      { role: "assistant", content: "Yes" },
      { role: "system", content: "Be brief" },
    ]);
    expect(newer.dropped).toEqual([]);
  });

  it("merges adjacent messages of one role", () => {
    expect(encode({ messages: [user, { role: "user", content: "There" }] })["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "Hi" },
          { type: "text", text: "There" },
        ],
      },
    ]);
  });

  it("puts all tool messages after a turn into one user message, results before text", () => {
    const body = encode({
      messages: [
        user,
        { role: "assistant", content: null, tool_calls: [call("a", '{"city":"Bern"}'), call("b", "")] },
        { role: "tool", tool_call_id: "a", content: "sun" },
        { role: "tool", tool_call_id: "b", content: "rain" },
        { role: "user", content: "And?" },
      ],
      tools: [weather],
    });
    expect(body["messages"]).toEqual([
      user,
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "a", name: "weather", input: { city: "Bern" } },
          { type: "tool_use", id: "b", name: "weather", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "sun" },
          { type: "tool_result", tool_use_id: "b", content: "rain" },
          { type: "text", text: "And?" },
        ],
      },
    ]);
  });

  it("leaves out blank texts, which the provider rejects", () => {
    const messages = [
      user,
      { role: "assistant", content: "", tool_calls: [call("a", "{}")] },
      { role: "user", content: " " },
    ];
    expect(encode({ messages })["messages"]).toEqual([
      user,
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "weather", input: {} }] },
    ]);
  });

  it("turns data URIs, links and files into sources and keeps cache marks", () => {
    const content = [
      { type: "text", text: "Look", cache_control: { type: "ephemeral", ttl: "1h" } },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
      { type: "image_url", image_url: { url: "https://example.com/a.png" } },
      { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,BBBB" } },
    ];
    expect(encode({ messages: [{ role: "user", content }] })["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "Look", cache_control: { type: "ephemeral", ttl: "1h" } },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: "BBBB" },
            title: "a.pdf",
          },
        ],
      },
    ]);
  });

  it("makes ids and names that the provider accepts, the same for call and result", () => {
    const id = "functions.weather:0";
    const body = encode({
      messages: [
        user,
        { role: "assistant", tool_calls: [call(id, "{}")] },
        { role: "tool", tool_call_id: id, content: "" },
      ],
    });
    const messages = body["messages"] as { content: { id?: string; tool_use_id?: string }[] }[];
    const made = messages[1]?.content[0]?.id;
    expect(made).toMatch(/^[a-zA-Z0-9_-]+$/);
    expect(messages[2]?.content[0]?.tool_use_id).toBe(made);
  });
});

describe("settings of a chat request for the messages dialect", () => {
  it.each([
    ["required", { type: "any" }],
    ["none", { type: "none" }],
    ["auto", { type: "auto" }],
    [
      { type: "function", function: { name: "weather" } },
      { type: "tool", name: "weather" },
    ],
  ])("translates tool_choice %j", (choice, expected) => {
    expect(encode({ tools: [weather], tool_choice: choice })["tool_choice"]).toEqual(expected);
  });

  it("forbids parallel calls through the tool choice", () => {
    expect(encode({ tools: [weather], parallel_tool_calls: false })["tool_choice"]).toEqual({
      type: "auto",
      disable_parallel_tool_use: true,
    });
    expect(encode({ tools: [weather], parallel_tool_calls: true })).not.toHaveProperty("tool_choice");
  });

  it("takes max_completion_tokens before max_tokens before the model's maximum", () => {
    expect(encode({ max_completion_tokens: 5, max_tokens: 9 })["max_tokens"]).toBe(5);
    expect(encode({ max_tokens: 9 })["max_tokens"]).toBe(9);
    expect(encode({}, { traits: { maxOutputTokens: 64_000 } })["max_tokens"]).toBe(64_000);
  });

  it("leaves out blank stop texts and lists the field", () => {
    const { body, dropped } = translate("chat", "messages", {
      model: "m",
      messages: [user],
      stop: ["END", "\n"],
    });
    expect(body["stop_sequences"]).toEqual(["END"]);
    expect(dropped).toEqual(["stop"]);
  });

  it("clamps the temperature to 1 and lists it, and leaves it out beside thinking", () => {
    const clamped = translate("chat", "messages", { model: "m", messages: [user], temperature: 1.7 });
    expect(clamped.body["temperature"]).toBe(1);
    expect(clamped.dropped).toEqual(["temperature"]);
    const thinking = translate("chat", "messages", {
      model: "m",
      messages: [user],
      temperature: 0.2,
      reasoning_effort: "low",
    });
    expect(thinking.body).not.toHaveProperty("temperature");
    expect(thinking.dropped).toEqual(["temperature"]);
  });

  it("tells a model without a mode for JSON to answer with JSON, listed", () => {
    const { body, dropped } = translate("chat", "messages", {
      model: "m",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" },
      ],
      response_format: { type: "json_object" },
    });
    expect(JSON.stringify(body["system"])).toMatch(/Be brief\..*JSON object/);
    expect(dropped).toEqual(["response_format"]);
  });

  it("sends only the tools that a choice allows", () => {
    const tool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
    const allowed = { mode: "required", tools: [{ type: "function", function: { name: "b" } }] };
    const request = {
      model: "m",
      messages: [{ role: "user", content: "Hi" }],
      tools: [tool("a"), tool("b")],
      tool_choice: { type: "allowed_tools", allowed_tools: allowed },
    };
    const { body } = translate("chat", "messages", request);
    expect(body["tools"]).toMatchObject([{ name: "b" }]);
    expect(body["tool_choice"]).toEqual({ type: "any" });
    const none = {
      ...request,
      tool_choice: { type: "allowed_tools", allowed_tools: { ...allowed, tools: [] } },
    };
    expect(() => translate("chat", "messages", none)).toThrow(
      expect.objectContaining({ field: "tool_choice" }),
    );
  });

  it("gives the effort to models that take one", () => {
    const body = encode({ reasoning_effort: "high" });
    expect(body["thinking"]).toEqual({ type: "adaptive" });
    expect(body["output_config"]).toEqual({ effort: "high" });
  });

  it("gives a budget to older models and raises max_tokens above it", () => {
    const body = encode({ reasoning_effort: "medium", max_tokens: 500 }, { model: "claude-sonnet-4-5" });
    expect(body["thinking"]).toEqual({ type: "enabled", budget_tokens: 8192 });
    expect(body["max_tokens"]).toBe(8192 + 4096);
    const small = encode(
      { reasoning_effort: "high" },
      { model: "claude-sonnet-4-5", traits: { maxOutputTokens: 8192 } },
    );
    expect(small["max_tokens"]).toBe(8192);
    expect((small["thinking"] as { budget_tokens: number }).budget_tokens).toBeLessThan(8192);
  });

  it("never thinks together with a forced tool", () => {
    const forced = { tools: [weather], tool_choice: "required", reasoning_effort: "high" };
    const request = { model: "m", messages: [user], ...forced };
    const adaptive = translate("chat", "messages", request);
    expect(adaptive.body).not.toHaveProperty("thinking");
    expect(adaptive.body["output_config"]).toEqual({ effort: "high" });
    const budget = translate("chat", "messages", request, { model: "claude-opus-4-1" });
    expect(budget.body).not.toHaveProperty("thinking");
    expect(budget.dropped).toEqual(["reasoning_effort"]);
  });

  it("does not think in the middle of a tool loop that began without thinking", () => {
    const messages = [
      user,
      { role: "assistant", tool_calls: [call("a", "{}")] },
      { role: "tool", tool_call_id: "a", content: "sun" },
    ];
    const request = { model: "m", messages, reasoning_effort: "high" };
    expect(translate("chat", "messages", request, { model: "claude-sonnet-4-5" }).body).not.toHaveProperty(
      "thinking",
    );
    expect(translate("chat", "messages", request).body).toHaveProperty("thinking");
  });

  it("translates a response format", () => {
    const schema = { type: "object", properties: {}, additionalProperties: false };
    const response_format = { type: "json_schema", json_schema: { name: "out", schema, strict: true } };
    expect(encode({ response_format })["output_config"]).toEqual({ format: { type: "json_schema", schema } });
  });

  it("gives the user as metadata", () => {
    expect(encode({ user: "u1" })["metadata"]).toEqual({ user_id: "u1" });
  });

  it.each([
    ["n", 2],
    ["logprobs", true],
    ["audio", { voice: "alloy", format: "wav" }],
    ["logit_bias", { 50256: -100 }],
    ["frequency_penalty", 0.5],
    ["functions", []],
    ["web_search_options", {}],
    ["some_new_field", 1],
  ])("refuses %s by name, or leaves it out and lists it", (field, value) => {
    const request = { model: "m", messages: [user], [field]: value };
    expect(() => translate("chat", "messages", request)).toThrow(
      expect.objectContaining({ name: "UnsupportedFieldError", field }),
    );
    const { body, dropped } = translate("chat", "messages", request, { dropUnsupported: true });
    expect(dropped).toEqual([field]);
    expect(body).not.toHaveProperty(field);
  });

  it("ignores fields that are null or say the default", () => {
    const request = {
      n: 1,
      logprobs: false,
      top_logprobs: 0,
      stop: null,
      audio: null,
      modalities: ["text"],
      frequency_penalty: 0,
    };
    expect(translate("chat", "messages", { model: "m", messages: [user], ...request }).dropped).toEqual([]);
  });
});

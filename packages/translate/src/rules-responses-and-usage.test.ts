/** Whole responses: stop reasons, usage, content, errors. */
import { describe, expect, it } from "vitest";
import type { Dialect } from "./dialect.ts";
import { encodeError, readUsage, translateError, translateResponse } from "./index.ts";
import { contextOf, DIALECT_NAMES } from "./translate-fixture.ts";

const fromMessages = (body: Record<string, unknown>, from: Dialect = "chat") =>
  translateResponse(contextOf(from, "messages"), { id: "msg_1", model: "claude", content: [], ...body });
const fromChat = (choice: Record<string, unknown>, from: Dialect = "messages", more = {}) =>
  translateResponse(contextOf(from, "chat"), {
    id: "c1",
    model: "gpt",
    created: 7,
    choices: [choice],
    ...more,
  });

describe("content in parts, as of Mistral's models that reason", () => {
  const content = [
    {
      type: "thinking",
      thinking: [
        { type: "text", text: "Let me " },
        { type: "text", text: "see." },
      ],
    },
    { type: "text", text: "The answer" },
    { type: "text", text: " is 42" },
  ];
  it("keeps thinking and text apart", () => {
    expect(fromChat({ message: { content }, finish_reason: "stop" })["content"]).toMatchObject([
      { type: "thinking", thinking: "Let me see." },
      { type: "text", text: "The answer is 42" },
    ]);
  });
});

describe("stop reasons", () => {
  it.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["tool_use", "tool_calls"],
    ["refusal", "content_filter"],
    ["pause_turn", "stop"],
  ])("of messages: %s is %s in chat completions", (reason, expected) => {
    expect(fromMessages({ stop_reason: reason })["choices"]).toMatchObject([{ finish_reason: expected }]);
  });

  it.each([
    ["stop", "end_turn"],
    ["length", "max_tokens"],
    ["tool_calls", "tool_use"],
    ["content_filter", "refusal"],
  ])("of chat completions: %s is %s in messages", (reason, expected) => {
    expect(fromChat({ message: { content: "a" }, finish_reason: reason })["stop_reason"]).toBe(expected);
  });

  it.each([
    ["STOP", "stop"],
    ["MAX_TOKENS", "length"],
    ["SAFETY", "content_filter"],
    ["RECITATION", "content_filter"],
  ])("of Gemini: %s is %s in chat completions", (reason, expected) => {
    const body = { candidates: [{ content: { parts: [{ text: "a" }] }, finishReason: reason }] };
    expect(translateResponse(contextOf("chat", "gemini"), body)["choices"]).toMatchObject([
      { finish_reason: expected },
    ]);
  });

  it("says tool_calls where a provider says stop beside calls", () => {
    const message = { tool_calls: [{ id: "a", function: { name: "f", arguments: "{}" } }] };
    expect(fromChat({ message, finish_reason: "stop" })["stop_reason"]).toBe("tool_use");
    const parts = [{ functionCall: { name: "f", args: {} } }];
    const gemini = { candidates: [{ content: { parts }, finishReason: "STOP" }] };
    expect(translateResponse(contextOf("chat", "gemini"), gemini)["choices"]).toMatchObject([
      { finish_reason: "tool_calls" },
    ]);
  });

  it("makes a response incomplete", () => {
    expect(fromMessages({ stop_reason: "max_tokens" }, "responses")).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    });
    expect(fromMessages({ stop_reason: "refusal" }, "responses")).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "content_filter" },
    });
  });

  it("tells a blocked prompt from an empty answer", () => {
    const body = { promptFeedback: { blockReason: "SAFETY" } };
    expect(translateResponse(contextOf("messages", "gemini"), body)["stop_reason"]).toBe("refusal");
  });

  it("keeps a refusal in the model's own words", () => {
    const choice = { message: { content: null, refusal: "No." }, finish_reason: "stop" };
    expect(fromChat(choice)).toMatchObject({
      content: [{ type: "text", text: "No." }],
      stop_reason: "refusal",
    });
    expect(fromChat(choice, "responses")).toMatchObject({
      status: "completed",
      output: [{ content: [{ type: "refusal", refusal: "No." }] }],
    });
  });
});

describe("usage", () => {
  const messages = {
    input_tokens: 10,
    cache_read_input_tokens: 100,
    cache_creation_input_tokens: 1000,
    cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 },
    output_tokens: 7,
    output_tokens_details: { thinking_tokens: 3 },
  };
  const neutral = {
    inputTokens: 1110,
    outputTokens: 7,
    cacheReadTokens: 100,
    cacheWriteTokens: 1000,
    cacheWriteLongTokens: 600,
    reasoningTokens: 3,
  };

  it("of messages counts cached tokens in the sum of chat completions", () => {
    expect(readUsage("messages", { usage: messages })).toEqual(neutral);
    expect(fromMessages({ usage: messages })["usage"]).toEqual({
      prompt_tokens: 1110,
      completion_tokens: 7,
      total_tokens: 1117,
      prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 1000 },
      completion_tokens_details: { reasoning_tokens: 3 },
    });
  });

  it("of chat completions leaves cached tokens out of input_tokens of messages", () => {
    const usage = {
      prompt_tokens: 50,
      completion_tokens: 5,
      total_tokens: 55,
      prompt_tokens_details: { cached_tokens: 30 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    expect(fromChat({ message: { content: "a" } }, "messages", { usage })["usage"]).toEqual({
      input_tokens: 20,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 30,
      output_tokens: 5,
      output_tokens_details: { thinking_tokens: 2 },
    });
  });

  it("of Gemini counts thoughts as output", () => {
    const usageMetadata = {
      promptTokenCount: 20,
      cachedContentTokenCount: 8,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 4,
      totalTokenCount: 29,
    };
    expect(readUsage("gemini", { usageMetadata })).toMatchObject({
      inputTokens: 20,
      outputTokens: 9,
      cacheReadTokens: 8,
      reasoningTokens: 4,
    });
    expect(translateResponse(contextOf("responses", "gemini"), { usageMetadata })["usage"]).toMatchObject({
      input_tokens: 20,
      output_tokens: 9,
      total_tokens: 29,
      output_tokens_details: { reasoning_tokens: 4 },
    });
  });

  it("of a provider that counts reasoning apart includes it", () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 35,
      completion_tokens_details: { reasoning_tokens: 20 },
    };
    expect(readUsage("chat", { usage })).toMatchObject({ outputTokens: 25, reasoningTokens: 20 });
  });

  it("is null where there is none", () => {
    for (const dialect of DIALECT_NAMES) expect(readUsage(dialect, {})).toBeNull();
  });
});

describe("citations", () => {
  it("of messages become annotations", () => {
    const citations = [
      {
        type: "web_search_result_location",
        url: "https://a.example",
        title: "A",
        cited_text: "x",
        encrypted_index: "e",
      },
    ];
    const content = [
      { type: "text", text: "See " },
      { type: "text", text: "this", citations },
    ];
    expect(fromMessages({ content })["choices"]).toMatchObject([
      {
        message: {
          content: "See this",
          annotations: [
            {
              type: "url_citation",
              url_citation: { url: "https://a.example", title: "A", start_index: 4, end_index: 8 },
            },
          ],
        },
      },
    ]);
    expect(fromMessages({ content }, "responses")["output"]).toMatchObject([
      { content: [{ text: "See " }, { annotations: [{ type: "url_citation", url: "https://a.example" }] }] },
    ]);
  });

  it("of chat completions become citations of messages", () => {
    const annotations = [
      {
        type: "url_citation",
        url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 3 },
      },
    ];
    expect(fromChat({ message: { content: "See this", annotations } })["content"]).toMatchObject([
      { citations: [{ type: "web_search_result_location", url: "https://a.example", cited_text: "See" }] },
    ]);
  });
});

describe("errors", () => {
  it.each([
    [
      "messages",
      { type: "error", error: { type: "overloaded_error", message: "Overloaded" }, request_id: "r" },
      529,
    ],
    ["gemini", { error: { code: 503, message: "Overloaded", status: "UNAVAILABLE" } }, 503],
    ["gemini", [{ error: { code: 503, message: "Overloaded", status: "UNAVAILABLE" } }], 503],
    ["chat", { error: { message: "Overloaded", type: "server_error", param: null, code: null } }, 503],
    ["responses", { error: { message: "Overloaded", type: "server_error" } }, 503],
    ["chat", { detail: "Overloaded" }, 503],
    ["chat", "Overloaded", 503],
  ] as const)("of %s keep status and message in every dialect", (to, body, status) => {
    for (const from of DIALECT_NAMES) {
      const error = translateError({ from, to }, status, body);
      expect(error.status).toBe(status);
      expect(error.body).toMatchObject({ error: { message: "Overloaded" } });
      if (from === "messages")
        expect(error.body).toMatchObject({ type: "error", error: { type: "overloaded_error" } });
    }
  });

  it("have a message even without a body", () => {
    expect(translateError({ from: "chat", to: "messages" }, 500, null).body).toMatchObject({
      error: { message: "the provider answered with status 500", type: "server_error" },
    });
  });

  it("carry a number and a type of the gateway's own", () => {
    const error = {
      status: 400,
      kind: "invalid_request",
      message: "No",
      code: "2008",
      type: "gateway_error",
    } as const;
    expect(encodeError("chat", error)).toEqual({
      error: { message: "No", type: "gateway_error", param: null, code: "2008" },
    });
    expect(encodeError("messages", error)).toEqual({
      type: "error",
      error: { type: "invalid_request_error", message: "No" },
      request_id: null,
    });
  });
});

describe("ids and names of responses", () => {
  it("are the upstream's where it gave some, else made", () => {
    expect(fromChat({ message: { content: "a" } })).toMatchObject({ id: "c1", model: "gpt" });
    expect(translateResponse(contextOf("chat", "gemini"), {})).toMatchObject({
      id: "chatcmpl-new1",
      model: "gemini-2.5-pro",
      created: 1_700_000_000,
    });
  });

  it("show the model that the caller chose to show", () => {
    const context = contextOf("chat", "messages", {}, { responseModel: "anthropic/claude" });
    expect(translateResponse(context, { model: "claude", content: [] })["model"]).toBe("anthropic/claude");
  });
});

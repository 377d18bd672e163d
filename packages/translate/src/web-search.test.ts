/** The search of the web between the dialects that have one. */
import { describe, expect, it } from "vitest";
import type { Dialect } from "./dialect.ts";
import { offersWebSearch, translateResponse } from "./index.ts";
import { contextOf, payloads, PLAIN, sse, translate, translateStream } from "./translate-fixture.ts";

const SEARCHES = { traits: { webSearch: true } };
const PLACE = { type: "approximate", city: "Bonn", country: "DE" };

/** A request with the search of each dialect, limited as far as the dialect allows. */
const OFFERS: Readonly<Record<Dialect, Record<string, unknown>>> = {
  messages: {
    tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 3, user_location: PLACE }],
  },
  responses: {
    tools: [{ type: "web_search", search_context_size: "low", user_location: PLACE }],
    max_tool_calls: 3,
  },
  chat: {
    web_search_options: {
      search_context_size: "low",
      user_location: { type: "approximate", approximate: { city: "Bonn", country: "DE" } },
    },
  },
  gemini: { tools: [{ googleSearch: {} }] },
};

function offer(from: Dialect, to: Dialect, more: Record<string, unknown> = {}) {
  return translate(from, to, { ...PLAIN[from], ...OFFERS[from], ...more }, SEARCHES);
}

describe("a request that offers the search", () => {
  it("is one, and one without it is none", () => {
    for (const dialect of ["chat", "messages", "responses", "gemini"] as const) {
      expect(offersWebSearch(dialect, OFFERS[dialect])).toBe(true);
      expect(offersWebSearch(dialect, PLAIN[dialect])).toBe(false);
    }
  });

  it.each(["responses", "chat", "gemini"] as const)("of %s offers it to messages", (from) => {
    const { tools } = offer(from, "messages").body as { tools: Record<string, unknown>[] };
    expect(tools).toHaveLength(1);
    expect(tools[0]).toMatchObject({ type: "web_search_20250305", name: "web_search" });
    if (from !== "gemini") expect(tools[0]?.["user_location"]).toEqual(PLACE);
    if (from === "responses") expect(tools[0]?.["max_uses"]).toBe(3);
  });

  it.each(["messages", "chat", "gemini"] as const)(
    "of %s offers it to responses, with its sources",
    (from) => {
      const { body } = offer(from, "responses");
      expect(body["tools"]).toMatchObject([{ type: "web_search" }]);
      expect(body["include"]).toContain("web_search_call.action.sources");
      expect(body["max_tool_calls"]).toBe(from === "messages" ? 3 : undefined);
    },
  );

  it.each(["messages", "responses", "chat"] as const)("of %s offers it to Gemini", (from) => {
    expect(offer(from, "gemini").body["tools"]).toEqual([{ googleSearch: {} }]);
  });

  it("is limited to sites, or refused", () => {
    const limited = {
      tools: [{ type: "web_search_20250305", name: "web_search", allowed_domains: ["a.test"] }],
    };
    const tool = offer("messages", "responses", limited).body["tools"];
    expect(tool).toEqual([{ type: "web_search", filters: { allowed_domains: ["a.test"] } }]);
    expect(() => offer("messages", "gemini", limited)).toThrow("allowed_domains");
    const blocked = {
      tools: [{ type: "web_search_20250305", name: "web_search", blocked_domains: ["a.test"] }],
    };
    expect(() => offer("messages", "responses", blocked)).toThrow("blocked_domains");
  });

  it("keeps the demand for it", () => {
    const choice = { tool_choice: { type: "tool", name: "web_search" } };
    expect(offer("messages", "responses", choice).body["tool_choice"]).toEqual({ type: "web_search" });
    const forced = { tool_choice: { type: "web_search" } };
    expect(offer("responses", "messages", forced).body["tool_choice"]).toEqual({
      type: "tool",
      name: "web_search",
    });
  });

  it("is refused by a target without it, unless there are other tools", () => {
    expect(() => translate("messages", "chat", { ...PLAIN.messages, ...OFFERS.messages })).toThrow("tools");
    expect(() => translate("chat", "messages", { ...PLAIN.chat, ...OFFERS.chat })).toThrow(
      "web_search_options",
    );
    const own = { name: "read", input_schema: { type: "object" } };
    const { body, dropped } = translate("messages", "chat", {
      ...PLAIN.messages,
      tools: [own, ...(OFFERS.messages["tools"] as object[])],
    });
    expect(body["tools"]).toHaveLength(1);
    expect(dropped).toEqual(["tools.web_search_20250305"]);
  });

  it("is left out for Gemini beside tools of the client, which Gemini refuses together", () => {
    const own = { name: "read", input_schema: { type: "object" } };
    const { body, dropped } = offer("messages", "gemini", {
      tools: [own, ...(OFFERS.messages["tools"] as object[])],
    });
    expect(body["tools"]).toMatchObject([{ functionDeclarations: [{ name: "read" }] }]);
    expect(dropped).toContain("tools.web_search_20250305");
  });

  it("means a tool of the client if it has this name", () => {
    const own = { name: "web_search", input_schema: { type: "object" } };
    const { body } = translate("messages", "chat", {
      ...PLAIN.messages,
      tools: [own],
      tool_choice: { type: "tool", name: "web_search" },
    });
    expect(body["tool_choice"]).toEqual({ type: "function", function: { name: "web_search" } });
  });
});

const PAGE = { url: "https://a.test/", title: "A" };
const TEXT = "It rains.";

const MESSAGE = {
  id: "msg_1",
  content: [
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "weather" } },
    {
      type: "web_search_tool_result",
      tool_use_id: "srvtoolu_1",
      content: [{ type: "web_search_result", ...PAGE, encrypted_content: "x", page_age: null }],
    },
    {
      type: "text",
      text: TEXT,
      citations: [{ type: "web_search_result_location", ...PAGE, cited_text: "q" }],
    },
  ],
  stop_reason: "end_turn",
  usage: { input_tokens: 5, output_tokens: 2, server_tool_use: { web_search_requests: 1 } },
};
const RESPONSE = {
  id: "resp_1",
  status: "completed",
  output: [
    {
      id: "ws_1",
      type: "web_search_call",
      status: "completed",
      action: { type: "search", query: "weather", sources: [{ type: "url", url: PAGE.url }] },
    },
    {
      id: "ws_2",
      type: "web_search_call",
      status: "completed",
      action: { type: "open_page", url: PAGE.url },
    },
    {
      type: "message",
      role: "assistant",
      content: [
        {
          type: "output_text",
          text: TEXT,
          annotations: [{ type: "url_citation", ...PAGE, start_index: 0, end_index: 9 }],
        },
      ],
    },
  ],
  usage: { input_tokens: 5, output_tokens: 2 },
};
const GROUNDED = {
  candidates: [
    {
      content: { role: "model", parts: [{ text: TEXT }] },
      finishReason: "STOP",
      groundingMetadata: {
        webSearchQueries: ["weather"],
        groundingChunks: [{ web: { uri: PAGE.url, title: PAGE.title } }],
        groundingSupports: [{ segment: { text: TEXT }, groundingChunkIndices: [0] }],
      },
    },
  ],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2 },
};
const ANSWERS = { messages: MESSAGE, responses: RESPONSE, gemini: GROUNDED } as const;

describe("an answer with a search", () => {
  it.each(["responses", "gemini"] as const)("of %s shows it in messages, before the text", (to) => {
    const answer = translateResponse(contextOf("messages", to), ANSWERS[to]);
    const [call, result, text] = answer["content"] as Record<string, unknown>[];
    expect(call).toMatchObject({ type: "server_tool_use", name: "web_search", input: { query: "weather" } });
    expect(result).toMatchObject({ type: "web_search_tool_result", tool_use_id: call?.["id"] });
    expect(result?.["content"]).toMatchObject([{ type: "web_search_result", url: PAGE.url }]);
    expect(text).toMatchObject({ type: "text", text: TEXT, citations: [{ url: PAGE.url }] });
    expect(answer["usage"]).toMatchObject({ server_tool_use: { web_search_requests: 1 } });
  });

  it.each(["messages", "gemini"] as const)("of %s shows it in responses", (to) => {
    const { output } = translateResponse(contextOf("responses", to), ANSWERS[to]) as { output: object[] };
    expect(output).toMatchObject([
      { type: "web_search_call", action: { type: "search", query: "weather", sources: [{ url: PAGE.url }] } },
      { type: "message", content: [{ text: TEXT, annotations: [{ url: PAGE.url }] }] },
    ]);
  });

  it.each(["messages", "responses"] as const)("of %s shows it in Gemini", (to) => {
    const { candidates } = translateResponse(contextOf("gemini", to), ANSWERS[to]) as {
      candidates: object[];
    };
    expect(candidates[0]).toMatchObject({
      groundingMetadata: { webSearchQueries: ["weather"], groundingChunks: [{ web: { uri: PAGE.url } }] },
    });
  });

  it.each(["messages", "responses", "gemini"] as const)("of %s has annotations in chat", (to) => {
    const { choices } = translateResponse(contextOf("chat", to), ANSWERS[to]) as { choices: object[] };
    expect(choices).toMatchObject([
      { message: { content: TEXT, annotations: [{ url_citation: { url: PAGE.url } }] } },
    ]);
  });
});

const MESSAGE_STREAM = sse(
  [
    { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 5, output_tokens: 0 } } },
    { type: "content_block_start", index: 0, content_block: { ...MESSAGE.content[0], input: {} } },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"query":' } },
    {
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json: '"weather"}' },
    },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: MESSAGE.content[1] },
    { type: "content_block_stop", index: 1 },
    { type: "content_block_start", index: 2, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: TEXT } },
    { type: "content_block_stop", index: 2 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ],
  true,
);
const RESPONSE_STREAM = sse(
  [
    { type: "response.created", response: { id: "resp_1" } },
    { type: "response.output_item.added", output_index: 0, item: { type: "web_search_call", id: "ws_1" } },
    { type: "response.output_item.done", output_index: 0, item: RESPONSE.output[0] },
    { type: "response.output_text.delta", output_index: 1, delta: TEXT },
    { type: "response.completed", response: RESPONSE },
  ],
  true,
);

describe("a stream with a search", () => {
  it("of responses has the blocks of messages one after the other", () => {
    const events = payloads(
      translateStream(contextOf("messages", "responses", { stream: true }), RESPONSE_STREAM),
    );
    const blocks = events.filter(({ type }) => type === "content_block_start");
    expect(
      blocks.map(({ index, content_block: block }) => [index, (block as { type: string }).type]),
    ).toEqual([
      [0, "server_tool_use"],
      [1, "web_search_tool_result"],
      [2, "text"],
    ]);
    const stops = events.filter(({ type }) => type === "content_block_stop");
    expect(stops.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(events).toContainEqual({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json: '{"query":"weather"}' },
    });
    expect(events.find(({ type }) => type === "message_delta")).toMatchObject({
      usage: { server_tool_use: { web_search_requests: 1 } },
    });
  });

  it("of messages has the item of responses, and repeats it at the end", () => {
    const events = payloads(
      translateStream(contextOf("responses", "messages", { stream: true }), MESSAGE_STREAM),
    );
    const done = events.filter(({ type }) => type === "response.output_item.done");
    expect(done.map(({ item }) => (item as { type: string }).type)).toEqual(["web_search_call", "message"]);
    expect(events.at(-1)).toMatchObject({
      type: "response.completed",
      response: { output: [{ type: "web_search_call", action: { query: "weather" } }, { type: "message" }] },
    });
  });

  it("of Gemini shows a search once that several chunks repeat", () => {
    const chunks = [GROUNDED, { ...GROUNDED, usageMetadata: {} }];
    const events = payloads(translateStream(contextOf("messages", "gemini", { stream: true }), sse(chunks)));
    expect(JSON.stringify(events).match(/"server_tool_use","id"/g)).toHaveLength(1);
  });
});

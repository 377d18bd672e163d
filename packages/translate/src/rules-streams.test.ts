/** Rules of streams. Each stands for a defect seen in another translator. */
import { describe, expect, it } from "vitest";
import type { Dialect } from "./dialect.ts";
import { createStreamTranslator, streamResponse, translateResponse } from "./index.ts";
import { contextOf, DIALECT_NAMES, payloads, sse, translateStream } from "./translate-fixture.ts";
import { UPSTREAM_STREAMS } from "./upstream-streams-fixture.ts";

const stream = (from: Dialect, to: Dialect, more = {}) =>
  translateStream(contextOf(from, to, { stream: true, ...more }), UPSTREAM_STREAMS[to]);
const types = (text: string) => payloads(text).map((event) => event["type"]);
const bytes = (text: string) => new TextEncoder().encode(text);

describe("a chat stream for messages clients", () => {
  it("opens and closes blocks in order, with interleaved calls one after the other", () => {
    const events = payloads(stream("messages", "chat"));
    const blocks = events.filter((event) => event["type"] === "content_block_start");
    expect(blocks.map((event) => event["index"])).toEqual([0, 1, 2, 3]);
    expect(blocks.map((event) => (event["content_block"] as { type: string }).type)).toEqual([
      "thinking",
      "text",
      "tool_use",
      "tool_use",
    ]);
    let open: unknown = null;
    for (const event of events) {
      if (event["type"] === "content_block_start") {
        expect(open).toBeNull();
        open = event["index"];
      } else if (event["type"] === "content_block_delta") expect(event["index"]).toBe(open);
      else if (event["type"] === "content_block_stop") {
        expect(event["index"]).toBe(open);
        open = null;
      }
    }
    const json = (index: number) =>
      events
        .filter((event) => event["type"] === "content_block_delta" && event["index"] === index)
        .map((event) => (event["delta"] as { partial_json: string }).partial_json)
        .join("");
    expect(json(2)).toBe('{"city":"Bern"}');
    expect(json(3)).toBe('{"city":"Roma"}');
  });

  it("starts with message_start at once, before the upstream's first byte if asked", () => {
    const translator = createStreamTranslator(contextOf("messages", "chat"));
    expect(types(translator.begin())).toEqual(["message_start"]);
    expect(translator.begin()).toBe("");
    const rest = translator.write(bytes(UPSTREAM_STREAMS.chat)) + translator.end();
    expect(types(rest).filter((type) => type === "message_start")).toEqual([]);
    expect(types(rest).at(-1)).toBe("message_stop");
  });

  it("reports usage with cached tokens in message_delta", () => {
    expect(payloads(stream("messages", "chat")).find((event) => event["type"] === "message_delta")).toEqual({
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: {
        input_tokens: 20,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 10,
        output_tokens: 20,
        output_tokens_details: { thinking_tokens: 4 },
      },
    });
  });
});

describe("a messages stream for chat clients", () => {
  it("begins with the role, counts calls only, and ends with DONE", () => {
    const events = payloads(stream("chat", "messages"));
    const deltas = events.flatMap((event) =>
      ((event["choices"] as { delta: Record<string, unknown> }[]) ?? []).map((c) => c.delta),
    );
    expect(deltas[0]).toEqual({ role: "assistant", content: "" });
    const calls = deltas.flatMap((delta) => (delta["tool_calls"] as { index: number; id?: string }[]) ?? []);
    expect(calls.filter((call) => call.id !== undefined)).toMatchObject([
      { index: 0, id: "call_a" },
      { index: 1, id: "call_b" },
    ]);
    expect(events.at(-1)).toEqual({ done: true });
    expect(events.at(-2)).toMatchObject({ choices: [{ finish_reason: "tool_calls" }] });
  });

  it("sends a usage chunk only if the client asked", () => {
    expect(stream("chat", "messages")).not.toContain("prompt_tokens");
    const events = payloads(stream("chat", "messages", { stream_options: { include_usage: true } }));
    expect(events.at(-2)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 30, completion_tokens: 20, total_tokens: 50 },
    });
  });

  it("gives a call without arguments an empty object", () => {
    const upstream = sse(
      [
        {
          type: "content_block_start",
          index: 0,
          content_block: { type: "tool_use", id: "a", name: "f", input: {} },
        },
        { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "" } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ],
      true,
    );
    expect(translateStream(contextOf("chat", "messages"), upstream)).toContain('"arguments":"{}"');
  });
});

describe("a chat stream whose content is a list of parts", () => {
  const delta = (content: unknown, finish_reason: string | null = null) => ({
    id: "c",
    model: "magistral-medium-latest",
    choices: [{ index: 0, delta: { content }, finish_reason }],
  });
  const thinking = (text: string) => [{ type: "thinking", thinking: [{ type: "text", text }] }];
  const upstream = `${sse(
    [
      delta(thinking("Let me ")),
      delta(thinking("see.")),
      delta([...thinking(" Yes."), { type: "text", text: "The answer" }]),
      delta([{ type: "text", text: " is " }]),
      delta("42", "stop"),
    ],
    false,
  )}data: [DONE]\n\n`;

  it.each(["messages", "responses", "gemini"] as const)("keeps its thinking and its text for %s", (from) => {
    const text = translateStream(
      contextOf(from, "chat", from === "gemini" ? {} : { stream: true }),
      upstream,
    );
    for (const part of ["Let me ", "see.", " Yes.", "The answer", " is ", "42"]) expect(text).toContain(part);
  });

  it("gives messages clients a block of thinking and a block of text", () => {
    const events = payloads(translateStream(contextOf("messages", "chat", { stream: true }), upstream));
    const starts = events.filter(({ type }) => type === "content_block_start");
    expect(starts).toMatchObject([
      { content_block: { type: "thinking" } },
      { content_block: { type: "text" } },
    ]);
  });
});

describe("a messages stream that begins a second answer", () => {
  it("ends with an error", () => {
    const upstream = sse(
      [
        { type: "message_start", message: { id: "a", model: "m", usage: { input_tokens: 1 } } },
        {
          type: "content_block_start",
          index: 0,
          content_block: { type: "tool_use", id: "t", name: "f", input: {} },
        },
        { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"a":' } },
        { type: "message_start", message: { id: "b", model: "m", usage: { input_tokens: 1 } } },
        {
          type: "content_block_delta",
          index: 0,
          delta: { type: "input_json_delta", partial_json: '{"b":1}' },
        },
        { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ],
      true,
    );
    const translator = createStreamTranslator(contextOf("chat", "messages", { stream: true }));
    translator.write(bytes(upstream));
    translator.end();
    expect([translator.isComplete, translator.error?.kind]).toEqual([false, "server"]);
  });
});

describe("sources that stand beside a chat answer", () => {
  const search_results = [{ title: "One", url: "https://example.com/1" }];
  const chunk = (content: string, finish_reason: string | null) => ({
    id: "c",
    model: "sonar",
    citations: ["https://example.com/1"],
    search_results,
    choices: [{ index: 0, delta: { content }, finish_reason }],
  });

  it("are its citations, once", () => {
    const upstream = `${sse([chunk("Hello", null), chunk(" you", "stop")], false)}data: [DONE]\n\n`;
    const text = translateStream(contextOf("messages", "chat", { stream: true }), upstream);
    expect(text.match(/example\.com/g)).toHaveLength(1);
    expect(text).toContain('"title":"One"');
  });

  it("are those of a whole answer, with titles or without", () => {
    for (const more of [{ search_results }, { citations: ["https://example.com/1"] }]) {
      const body = { choices: [{ message: { content: "Hello" }, finish_reason: "stop" }], ...more };
      const { content } = translateResponse(contextOf("messages", "chat"), body);
      expect(JSON.stringify(content)).toContain("https://example.com/1");
    }
  });
});

describe("a whole response for a client that asked for a stream", () => {
  const STREAMED: Record<Dialect, Record<string, unknown>> = {
    chat: { stream: true, stream_options: { include_usage: true } },
    messages: { stream: true },
    responses: { stream: true },
    gemini: {},
  };
  const parts: Record<Dialect, Record<string, unknown>> = {
    chat: {
      choices: [
        {
          message: {
            reasoning_content: "Let me see.",
            content: "Hello",
            tool_calls: [{ id: "t", function: { name: "f", arguments: '{"a":1}' } }],
          },
          finish_reason: "tool_calls",
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
    },
    messages: {
      content: [
        { type: "thinking", thinking: "Let me see.", signature: "s" },
        { type: "text", text: "Hello" },
        { type: "tool_use", id: "t", name: "f", input: { a: 1 } },
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 3, output_tokens: 2 },
    },
    responses: {
      output: [
        { type: "reasoning", id: "rs", summary: [{ type: "summary_text", text: "Let me see." }] },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello" }] },
        { type: "function_call", call_id: "t", name: "f", arguments: '{"a":1}' },
      ],
      status: "completed",
      usage: { input_tokens: 3, output_tokens: 2 },
    },
    gemini: {
      candidates: [
        {
          content: {
            parts: [
              { text: "Let me see.", thought: true },
              { text: "Hello" },
              { functionCall: { name: "f", args: { a: 1 } } },
            ],
          },
          finishReason: "STOP",
        },
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    },
  };

  it.each(
    DIALECT_NAMES.flatMap((from) =>
      DIALECT_NAMES.filter((to) => to !== from).map((to) => [from, to] as const),
    ),
  )("for %s clients from %s upstreams is that of the same parts", (from, to) => {
    const text = streamResponse(contextOf(from, to, STREAMED[from]), parts[to]);
    // Read back, the stream has what the whole response has.
    const back = createStreamTranslator(contextOf("messages", from, { stream: true }));
    const read = from === "messages" ? text : back.write(bytes(text)) + back.end();
    const events = payloads(read);
    const started = events
      .filter(({ type }) => type === "content_block_start")
      .map(({ content_block: block }) => (block as { type: string }).type);
    expect(started).toEqual(["thinking", "text", "tool_use"]);
    expect(read).toMatch(/Let me see\.[\s\S]*Hello[\s\S]*"name":"f"/);
    expect(events.at(-1)).toMatchObject({ type: "message_stop" });
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } });
  });
});

describe("a Gemini stream", () => {
  it("sends a whole call as one delta of arguments", () => {
    const events = payloads(stream("chat", "gemini"));
    const calls = events.flatMap((event) =>
      ((event["choices"] as { delta: Record<string, unknown> }[]) ?? []).flatMap(
        (choice) => (choice.delta["tool_calls"] as Record<string, unknown>[]) ?? [],
      ),
    );
    expect(calls).toEqual([
      {
        index: 0,
        id: "call_a",
        type: "function",
        function: { name: "weather", arguments: "" },
        extra_content: { google: { thought_signature: "GSIG" } },
      },
      { index: 0, function: { arguments: '{"city":"Bern"}' } },
      { index: 1, id: "call_b", type: "function", function: { name: "weather", arguments: "" } },
      { index: 1, function: { arguments: '{"city":"Roma"}' } },
    ]);
  });
});

describe("every stream", () => {
  const pairs = DIALECT_NAMES.flatMap((from) =>
    DIALECT_NAMES.filter((to) => to !== from).map((to) => [from, to] as const),
  );

  it.each(pairs)("for %s clients from %s upstreams is complete and has its usage", (from, to) => {
    const translator = createStreamTranslator(contextOf(from, to, from === "gemini" ? {} : { stream: true }));
    const text = translator.write(bytes(UPSTREAM_STREAMS[to])) + translator.end();
    expect(translator.isComplete).toBe(true);
    expect(translator.error).toBeNull();
    expect(translator.usage).toMatchObject({
      inputTokens: 30,
      outputTokens: 20,
      cacheReadTokens: 10,
      reasoningTokens: 4,
    });
    expect(text).toContain("Grüße ");
    expect(text).toContain("aus 北京 😀");
    expect(text).toContain("Let me ");
    expect(translator.write(bytes("data: {}\n\n")) + translator.end()).toBe("");
  });

  it.each(pairs)(
    "for %s clients from %s upstreams that breaks off ends with an error and no terminal event",
    (from, to) => {
      const context = contextOf(from, to, from === "gemini" ? {} : { stream: true });
      const translator = createStreamTranslator(context);
      const upstream = UPSTREAM_STREAMS[to];
      const text =
        translator.write(bytes(upstream.slice(0, upstream.indexOf("aus 北京")))) + translator.end();
      expect(translator.isComplete).toBe(false);
      expect(translator.error).toMatchObject({ status: 502 });
      const events = payloads(text);
      expect(events.at(-1)).toHaveProperty("error");
      const terminal = ["[DONE]", "message_stop", "response.completed", '"finishReason"'];
      for (const mark of terminal) expect(text).not.toContain(mark);
    },
  );

  it.each(pairs)("for %s clients passes an error of %s upstreams on", (from, to) => {
    const upstreamError = {
      chat: sse([{ error: { message: "Overloaded", type: "server_error", code: null } }]),
      responses: sse(
        [{ type: "error", code: "server_error", message: "Overloaded", param: null, sequence_number: 1 }],
        true,
      ),
      messages: sse([{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }], true),
      gemini: sse([{ error: { code: 503, message: "Overloaded", status: "UNAVAILABLE" } }]),
    };
    const translator = createStreamTranslator(contextOf(from, to));
    const text = translator.write(bytes(upstreamError[to])) + translator.end();
    expect(payloads(text).at(-1)).toMatchObject({ error: { message: "Overloaded" } });
    expect(translator.error?.message).toBe("Overloaded");
    expect(translator.isComplete).toBe(false);
  });

  it.each(DIALECT_NAMES)("for %s clients ends with the caller's own error", (from) => {
    const translator = createStreamTranslator(contextOf(from, from === "chat" ? "messages" : "chat"));
    const text = translator.fail({ status: 504, kind: "timeout", message: "Too slow", code: "2004" });
    expect(payloads(text).at(-1)).toMatchObject({ error: { message: "Too slow" } });
    expect(translator.write(bytes(UPSTREAM_STREAMS.chat))).toBe("");
  });

  it("ends with an error when the upstream sends no JSON", () => {
    const translator = createStreamTranslator(contextOf("chat", "messages"));
    expect(payloads(translator.write(bytes("data: <html>\n\n"))).at(-1)).toHaveProperty("error");
    expect(translator.isComplete).toBe(false);
  });

  it("counts a chat stream without DONE as complete if it had a reason", () => {
    const upstream = UPSTREAM_STREAMS.chat.replace("data: [DONE]\n\n", "");
    expect(types(translateStream(contextOf("messages", "chat"), upstream)).at(-1)).toBe("message_stop");
  });

  it("keeps calls apart that share one index but have ids of their own", () => {
    const call = (id: string) => ({
      index: 0,
      id,
      type: "function",
      function: { name: "f", arguments: "{}" },
    });
    const upstream = sse([
      { choices: [{ index: 0, delta: { tool_calls: [call("a")] } }] },
      { choices: [{ index: 0, delta: { tool_calls: [call("b")] } }] },
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
      "[DONE]",
    ]);
    const events = payloads(translateStream(contextOf("messages", "chat"), upstream));
    const ids = events.flatMap((event) => (event["content_block"] as { id?: string } | undefined)?.id ?? []);
    expect(ids).toEqual(["a", "b"]);
    expect(events.find((event) => event["type"] === "message_delta")).toMatchObject({
      delta: { stop_reason: "tool_use" },
    });
  });

  it("restores custom tools in one delta", () => {
    const tools = [{ type: "custom", name: "apply_patch" }];
    const context = contextOf("responses", "messages", { tools, stream: true });
    const delta = (partial_json: string) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json },
    });
    const upstream = sse(
      [
        {
          type: "content_block_start",
          index: 0,
          content_block: { type: "tool_use", id: "t", name: "apply_patch", input: {} },
        },
        delta('{"input":"*** Beg'),
        delta('in\\n+a"}'),
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ],
      true,
    );
    const events = payloads(translateStream(context, upstream));
    expect(events.find((event) => event["type"] === "response.custom_tool_call_input.delta")).toMatchObject({
      delta: "*** Begin\n+a",
    });
    expect(events.at(-1)).toMatchObject({
      type: "response.completed",
      response: {
        output: [{ type: "custom_tool_call", call_id: "t", name: "apply_patch", input: "*** Begin\n+a" }],
      },
    });
  });

  it("numbers the events of a response without gaps", () => {
    const numbers = payloads(stream("responses", "messages")).map((event) => event["sequence_number"]);
    expect(numbers).toEqual(numbers.map((_, i) => i));
  });
});

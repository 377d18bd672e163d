/** Requests and responses that mean harm. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createStreamTranslator,
  estimateInputTokens,
  InvalidRequestError,
  translateResponse,
  UnsupportedFieldError,
} from "./index.ts";
import { contextOf, DIALECT_NAMES, PLAIN, translate } from "./translate-fixture.ts";

const pairs = DIALECT_NAMES.flatMap((from) =>
  DIALECT_NAMES.filter((to) => to !== from).map((to) => [from, to] as const),
);

function nested(depth: number): unknown {
  let value: unknown = {};
  for (let i = 0; i < depth; i++) value = { properties: { a: value } };
  return value;
}

/** JSON with the names that the dialects use, in wrong places and of wrong types. */
const names = fc.constantFrom(
  "messages",
  "role",
  "content",
  "type",
  "text",
  "tools",
  "function",
  "name",
  "input",
  "parts",
  "contents",
  "system",
  "tool_calls",
  "id",
  "arguments",
  "source",
  "url",
  "data",
  "__proto__",
  "constructor",
  "toString",
  "choices",
  "message",
  "output",
  "candidates",
  "usage",
  "thinking",
  "input_schema",
  "generationConfig",
  "tool_choice",
  "stop",
  "metadata",
);
const words = fc.constantFrom(
  "user",
  "assistant",
  "system",
  "tool",
  "text",
  "tool_use",
  "tool_result",
  "function",
  "message",
  "image",
  "document",
  "model",
  "",
);
const { value: junk } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    words,
    fc.constantFrom(null, true, 0, -1, 1e308, "x"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc
      .array(fc.tuple(names, tie("value")), { maxLength: 6 })
      .map(
        (entries) =>
          JSON.parse(
            `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join()}}`,
          ) as unknown,
      ),
  ),
}));

describe("hostile requests", () => {
  it.each(pairs)("of %s for %s give a request or a named error, and nothing else", (from, to) => {
    fc.assert(
      fc.property(junk, junk, (first, second) => {
        const body = {
          ...PLAIN[from],
          ...(typeof first === "object" ? first : {}),
          messages: [first, second],
          input: [second],
          contents: [first],
        };
        for (const dropUnsupported of [true, false]) {
          try {
            JSON.stringify(translate(from, to, body, { dropUnsupported }).body);
          } catch (error) {
            expect(error instanceof InvalidRequestError || error instanceof UnsupportedFieldError).toBe(true);
          }
        }
        expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
      }),
      { numRuns: 150 },
    );
  });

  it.each(pairs)("of %s for %s with more parts than any conversation has are refused", (from, to) => {
    const many = Array.from({ length: 100_001 }, () => ({ role: "user", content: "" }));
    const body = { ...PLAIN[from], messages: many, input: many, contents: many };
    expect(() => translate(from, to, body)).toThrow(InvalidRequestError);
  });

  it.each(pairs)("of %s for %s cannot reach a prototype", (from, to) => {
    const evil = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    ) as object;
    const holder = {
      chat: { tools: [{ type: "function", function: { name: "f", parameters: evil } }], metadata: evil },
      messages: { tools: [{ name: "f", input_schema: evil }] },
      responses: { tools: [{ type: "function", name: "f", parameters: evil }], metadata: evil },
      gemini: {
        tools: [
          {
            functionDeclarations: [{ name: "f", parameters: { type: "OBJECT", properties: evil, ...evil } }],
          },
        ],
      },
    };
    const { body } = translate(from, to, { ...PLAIN[from], ...holder[from] }, { dropUnsupported: true });
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    const visit = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      expect([Object.prototype, Array.prototype]).toContain(Object.getPrototypeOf(value));
      for (const inner of Object.values(value)) visit(inner);
    };
    visit(body);
  });

  it.each(DIALECT_NAMES)("of %s that are nested without end are refused", (from) => {
    const to = from === "chat" ? "messages" : "chat";
    const tool = {
      chat: { type: "function", function: { name: "f", parameters: nested(100_000) } },
      messages: { name: "f", input_schema: nested(100_000) },
      responses: { type: "function", name: "f", parameters: nested(100_000) },
      gemini: { functionDeclarations: [{ name: "f", parameters: nested(100_000) }] },
    };
    expect(() => translate(from, to, { ...PLAIN[from], tools: [tool[from]] })).toThrow(InvalidRequestError);
  });

  it("pass megabytes of base64 without a copy that changes them", () => {
    const data = "A".repeat(4_000_000);
    const content = [{ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } }];
    const { body } = translate("chat", "messages", { model: "m", messages: [{ role: "user", content }] });
    const [message] = body["messages"] as { content: { source: { data: string } }[] }[];
    expect(message?.content[0]?.source.data).toBe(data);
  });

  it("cannot make the list of losses long or unsafe for a header", () => {
    const noise = Object.fromEntries(
      Array.from({ length: 5000 }, (_, i) => [`field ${i}\r\nx: y,${"z".repeat(300)}`, 1]),
    );
    const { dropped } = translate("chat", "messages", { ...PLAIN.chat, ...noise }, { dropUnsupported: true });
    expect(dropped).toHaveLength(51);
    for (const name of dropped) expect(name).toMatch(/^[\w.[\]?-]{1,100}$/);
  });

  it.each([null, 1, "x", [], true])("that are %j are refused", (body) => {
    for (const from of DIALECT_NAMES) {
      expect(() => translate(from, from === "chat" ? "messages" : "chat", body)).toThrow(InvalidRequestError);
      expect(() => estimateInputTokens(from, body)).toThrow(InvalidRequestError);
    }
  });
});

describe("hostile responses", () => {
  it.each(pairs)("for %s clients from %s upstreams never throw", (from, to) => {
    const context = contextOf(from, to);
    fc.assert(
      fc.property(junk, junk, (first, second) => {
        const body = {
          choices: [{ message: first, finish_reason: second }],
          content: [first, second],
          output: [first, second],
        };
        const candidates = [{ content: { parts: [first, second] }, finishReason: second }];
        JSON.stringify(
          translateResponse(context, { ...body, candidates, usage: second, usageMetadata: first }),
        );
        JSON.stringify(translateResponse(context, first));
      }),
      { numRuns: 150 },
    );
  });

  it.each(pairs)("in streams for %s clients from %s upstreams never throw", (from, to) => {
    const context = contextOf(from, to);
    const types = fc.constantFrom(
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "response.created",
      "response.output_item.added",
      "response.output_item.done",
      "response.output_text.delta",
      "response.function_call_arguments.delta",
      "response.completed",
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(types, junk, junk), { maxLength: 8 }), (events) => {
        const translator = createStreamTranslator(context);
        for (const [type, first, second] of events) {
          const event = {
            type,
            index: 0,
            output_index: 0,
            delta: first,
            item: second,
            content_block: second,
            response: first,
            message: first,
          };
          const chunk = {
            choices: [{ delta: first, finish_reason: second }],
            candidates: [{ content: { parts: [first] } }],
          };
          translator.write(
            new TextEncoder().encode(`data: ${JSON.stringify({ ...event, ...chunk, usage: second })}\n\n`),
          );
        }
        translator.end();
      }),
      { numRuns: 100 },
    );
  });
});

/** A request that goes to another dialect and back is the same, on what both can say. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Dialect } from "./dialect.ts";
import { translate } from "./translate-fixture.ts";

const TRAITS = {
  takesReasoningContent: true,
  takesCacheControl: true,
  reasoning: "adaptive",
  sampling: "both",
  efforts: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
  maxTokensField: "max_tokens",
} as const;

/** There and back. Reasoning settings differ by target, so the way back gets those of its own dialect. */
function roundTrip(from: Dialect, by: Dialect, body: unknown): unknown {
  const there = translate(from, by, body, {
    model: "m",
    traits: { ...TRAITS, reasoning: by === "messages" ? "adaptive" : "effort" },
  });
  const back = translate(by, from, there.body, {
    model: "m",
    traits: { ...TRAITS, reasoning: from === "messages" ? "adaptive" : "effort" },
    ...(by === "gemini" ? { stream: there.stream } : {}),
  });
  return back.body;
}

const text = fc
  .string({ minLength: 1, maxLength: 40, unit: "grapheme" })
  .filter((value) => value.trim() !== "");
const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,20}$/);
const json = fc.dictionary(name, fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)), {
  maxKeys: 4,
});
const schema = fc
  .dictionary(name, fc.constantFrom({ type: "string" }, { type: "integer" }, { type: ["boolean", "null"] }), {
    maxKeys: 4,
  })
  .map((properties) => ({ type: "object", properties, additionalProperties: false }));
const base64 = fc.base64String({ minLength: 4, maxLength: 40 });
const temperature = fc.integer({ min: 0, max: 100 }).map((value) => value / 100);
const maybe = <T>(field: string, value: fc.Arbitrary<T>) =>
  fc.oneof(
    fc.constant({}),
    value.map((inner) => ({ [field]: inner })),
  );
const merged = (...parts: fc.Arbitrary<object>[]) =>
  fc.tuple(...parts).map((values) => Object.assign({}, ...values) as object);

const chatText = text.map((value) => ({ type: "text", text: value }));
const chatImage = fc.oneof(
  base64.map((data) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } })),
  name.map((path) => ({ type: "image_url", image_url: { url: `https://example.com/${path}.png` } })),
);
const chatContent = fc.oneof(
  text,
  fc.tuple(chatText, chatImage).map((parts) => [...parts]),
);
const chatUser = chatContent.map((content) => [{ role: "user", content }]);
const chatCalls = fc.uniqueArray(fc.tuple(name, name, json), {
  minLength: 1,
  maxLength: 3,
  selector: ([id]) => id,
});
/** An assistant turn with calls, the results, and what the user says next. */
const chatLoop = fc.tuple(chatCalls, fc.option(text), text, text).map(([calls, said, result, next]) => [
  {
    role: "assistant",
    content: said,
    tool_calls: calls.map(([id, tool, args]) => ({
      id,
      type: "function",
      function: { name: tool, arguments: JSON.stringify(args) },
    })),
  },
  ...calls.map(([id]) => ({ role: "tool", tool_call_id: id, content: result })),
  { role: "user", content: next },
]);
const chatAnswer = fc.tuple(text, text).map(([answer, next]) => [
  { role: "assistant", content: answer },
  { role: "user", content: next },
]);
const chatMessages = fc
  .tuple(fc.option(text), chatUser, fc.array(fc.oneof(chatLoop, chatAnswer), { maxLength: 3 }))
  .map(([system, first, rest]) => [
    ...(system === null ? [] : [{ role: "system", content: system }]),
    ...first,
    ...rest.flat(),
  ]);
const chatTool = fc.tuple(name, text, schema).map(([tool, description, parameters]) => ({
  type: "function",
  function: { name: tool, description, parameters },
}));
const chatTools = fc
  .tuple(
    fc.uniqueArray(chatTool, { minLength: 1, maxLength: 3, selector: (tool) => tool.function.name }),
    fc.constantFrom("auto", "none", "required", "named"),
  )
  .map(([tools, choice]) => ({
    tools,
    tool_choice:
      choice === "named" ? { type: "function", function: { name: tools[0]?.function.name } } : choice,
  }));
const chatRequest = (...more: fc.Arbitrary<object>[]) =>
  merged(
    fc.constant({ model: "m" }),
    chatMessages.map((messages) => ({ messages })),
    fc.integer({ min: 16, max: 9999 }).map((max_tokens) => ({ max_tokens })),
    maybe("temperature", temperature),
    fc.oneof(fc.constant({}), chatTools),
    ...more,
  );
const stop = maybe("stop", fc.array(text, { minLength: 1, maxLength: 3 }));
const format = maybe(
  "response_format",
  schema.map((inner) => ({
    type: "json_schema",
    json_schema: { name: "response", schema: inner, strict: true },
  })),
);
const stream = fc.constantFrom({}, { stream: true, stream_options: { include_usage: true } });

describe("a chat request", () => {
  it("survives messages", () => {
    fc.assert(
      fc.property(
        chatRequest(stop, maybe("user", name), format, stream, maybe("top_p", temperature)),
        (body) => {
          const back = roundTrip("chat", "messages", body) as Record<string, unknown>;
          const { safety_identifier, ...rest } = back;
          expect(safety_identifier === undefined ? rest : { ...rest, user: safety_identifier }).toEqual(body);
        },
      ),
    );
  });

  it("survives messages with an effort, where no temperature and no forced tool stand against it", () => {
    const effort = fc.constantFrom("low", "medium", "high", "xhigh", "max");
    fc.assert(
      fc.property(chatMessages, effort, (messages, reasoning_effort) => {
        const body = { model: "m", messages, max_tokens: 99, reasoning_effort };
        expect(roundTrip("chat", "messages", body)).toEqual(body);
      }),
    );
  });

  it("survives responses", () => {
    const more = [
      format,
      stream,
      maybe("user", name),
      maybe("top_p", temperature),
      maybe("parallel_tool_calls", fc.boolean()).map((field) => field),
      maybe("prompt_cache_key", name),
      maybe("metadata", fc.dictionary(name, text, { maxKeys: 2 })),
      maybe("verbosity", fc.constantFrom("low", "high")),
      maybe("service_tier", fc.constantFrom("flex", "priority")),
      maybe("reasoning_effort", fc.constantFrom("none", "minimal", "low", "high")),
    ];
    fc.assert(
      fc.property(chatRequest(...more), (body) => {
        const expected = { ...body } as Record<string, unknown>;
        // Without tools the flag says nothing.
        if (expected["tools"] === undefined) delete expected["parallel_tool_calls"];
        expect(roundTrip("chat", "responses", body)).toEqual(expected);
      }),
    );
  });

  it("survives Gemini", () => {
    const more = [
      stop,
      maybe("top_p", temperature),
      maybe("seed", fc.integer({ min: 0 })),
      maybe("frequency_penalty", temperature),
      maybe("presence_penalty", temperature),
      maybe(
        "response_format",
        schema.map((inner) => ({ type: "json_schema", json_schema: { name: "response", schema: inner } })),
      ),
      maybe("reasoning_effort", fc.constantFrom("minimal", "low", "medium", "high")),
    ];
    fc.assert(
      fc.property(chatRequest(...more), (body) => {
        expect(roundTrip("chat", "gemini", body)).toEqual(body);
      }),
    );
  });
});

const block = (kind: string) => text.map((value) => ({ type: kind, text: value }));
const messagesImage = base64.map((data) => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data },
}));
const messagesLoop = fc
  .tuple(
    fc.uniqueArray(fc.tuple(name, name, json), { minLength: 1, maxLength: 3, selector: ([id]) => id }),
    fc.option(text),
    text,
    fc.option(text),
  )
  .map(([calls, said, result, next]) => [
    {
      role: "assistant",
      content: [
        ...(said === null ? [] : [{ type: "text", text: said }]),
        ...calls.map(([id, tool, input]) => ({ type: "tool_use", id, name: tool, input })),
      ],
    },
    {
      role: "user",
      content: [
        ...calls.map(([id]) => ({ type: "tool_result", tool_use_id: id, content: result })),
        ...(next === null ? [] : [{ type: "text", text: next }]),
      ],
    },
  ]);
const messagesRequest = merged(
  fc.constant({ model: "m" }),
  fc
    .tuple(
      fc.oneof(
        text,
        fc.tuple(block("text"), messagesImage).map((parts) => [...parts]),
      ),
      fc.array(messagesLoop, { maxLength: 3 }),
      text,
      text,
    )
    .map(([first, loops, answer, last]) => ({
      messages: [
        { role: "user", content: first },
        ...loops.flat(),
        { role: "assistant", content: answer },
        { role: "user", content: last },
      ],
    })),
  fc.integer({ min: 16, max: 9999 }).map((max_tokens) => ({ max_tokens })),
  maybe("temperature", temperature),
  maybe("system", text),
  fc.oneof(
    fc.constant({}),
    fc
      .tuple(
        fc.uniqueArray(fc.tuple(name, text, schema), {
          minLength: 1,
          maxLength: 3,
          selector: ([tool]) => tool,
        }),
        fc.constantFrom("auto", "none", "any", "tool"),
      )
      .map(([tools, type]) => ({
        tools: tools.map(([tool, description, input_schema]) => ({ name: tool, description, input_schema })),
        tool_choice: type === "tool" ? { type, name: tools[0]?.[0] } : { type },
      })),
  ),
  maybe(
    "output_config",
    schema.map((inner) => ({ format: { type: "json_schema", schema: inner } })),
  ),
  fc.constantFrom({}, { stream: true }),
);

describe("a messages request", () => {
  it.each(["responses", "chat"] as const)("survives %s", (by) => {
    fc.assert(
      fc.property(messagesRequest, (body) => {
        expect(roundTrip("messages", by, body)).toEqual(body);
      }),
    );
  });
});

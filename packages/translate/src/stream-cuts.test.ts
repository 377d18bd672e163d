/** Every cut of a stream's bytes gives the same events. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Dialect } from "./dialect.ts";
import { createStreamTranslator } from "./index.ts";
import { EventParser } from "./stream/event-parser.ts";
import { contextOf, DIALECT_NAMES } from "./translate-fixture.ts";
import { UPSTREAM_STREAMS } from "./upstream-streams-fixture.ts";

const pairs = DIALECT_NAMES.flatMap((from) =>
  DIALECT_NAMES.filter((to) => to !== from).map((to) => [from, to] as const),
);

function translateCut(from: Dialect, to: Dialect, bytes: Uint8Array, cuts: readonly number[]): string {
  const translator = createStreamTranslator(contextOf(from, to, from === "gemini" ? {} : { stream: true }));
  let out = "";
  let at = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    out += translator.write(bytes.subarray(at, cut));
    at = cut;
  }
  return out + translator.write(bytes.subarray(at)) + translator.end();
}

function parse(bytes: Uint8Array, cuts: readonly number[]): readonly (readonly [string, string])[] {
  const events: (readonly [string, string])[] = [];
  const parser = new EventParser((event, data) => events.push([event, data]));
  let at = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    parser.push(bytes.subarray(at, cut));
    at = cut;
  }
  parser.push(bytes.subarray(at));
  parser.end();
  return events;
}

describe("a stream that is cut anywhere", () => {
  it.each(pairs)("is the same for %s clients of %s upstreams", (from, to) => {
    const bytes = new TextEncoder().encode(UPSTREAM_STREAMS[to]);
    const expected = translateCut(from, to, bytes, []);
    const cuts = fc.array(fc.nat({ max: bytes.length }), { maxLength: 30 });
    fc.assert(
      fc.property(cuts, (at) => {
        expect(translateCut(from, to, bytes, at)).toBe(expected);
      }),
      { numRuns: 40 },
    );
  });

  it.each(DIALECT_NAMES)("byte by byte, and with other line ends, is the same from %s upstreams", (to) => {
    const from = to === "messages" ? "chat" : "messages";
    const bytes = new TextEncoder().encode(UPSTREAM_STREAMS[to]);
    const expected = translateCut(from, to, bytes, []);
    expect(translateCut(from, to, bytes, [...bytes.keys()])).toBe(expected);
    for (const end of ["\r\n", "\r"]) {
      const other = new TextEncoder().encode(UPSTREAM_STREAMS[to].replaceAll("\n", end));
      expect(translateCut(from, to, other, [])).toBe(expected);
      expect(translateCut(from, to, other, [...other.keys()])).toBe(expected);
    }
  });
});

describe("the event parser", () => {
  const line = fc.oneof(
    fc.string({ unit: "binary", maxLength: 10 }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
    fc.constantFrom(
      "",
      ": comment",
      "event: x",
      "id: 1",
      "data",
      "data:",
      "data:  two",
      "\uFEFF",
      "retry: 1",
    ),
  );
  const stream = fc
    .array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n")), { maxLength: 20 })
    .map((lines) => lines.flat().join(""));

  it("gives the same events for every cut of any text", () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat({ max: 200 }), { maxLength: 10 }), (text, cuts) => {
        const bytes = new TextEncoder().encode(text);
        expect(
          parse(
            bytes,
            cuts.map((cut) => Math.min(cut, bytes.length)),
          ),
        ).toEqual(parse(bytes, []));
      }),
    );
  });

  it("gives the same events for every cut of invalid UTF-8", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 30 }),
        fc.array(fc.nat({ max: 40 }), { maxLength: 6 }),
        (noise, cuts) => {
          const head = new TextEncoder().encode("data: ");
          const bytes = new Uint8Array([...head, ...noise, 10, 10]);
          expect(
            parse(
              bytes,
              cuts.map((cut) => Math.min(cut, bytes.length)),
            ),
          ).toEqual(parse(bytes, []));
        },
      ),
    );
  });

  it("joins data lines, skips comments and keeps the event's name", () => {
    const text = ": hello\nevent: a\ndata: 1\ndata:2\n\ndata: 3\n\nevent: b\n\n";
    expect(parse(new TextEncoder().encode(text), [])).toEqual([
      ["a", "1\n2"],
      ["", "3"],
    ]);
  });

  it("takes an event of megabytes that comes in small pieces, in linear time", () => {
    const bytes = new TextEncoder().encode(`data: ${"x".repeat(8_000_000)}\n\n`);
    const cuts = Array.from({ length: Math.ceil(bytes.length / 1000) }, (_, i) => i * 1000);
    expect(parse(bytes, cuts)[0]?.[1]).toHaveLength(8_000_000);
  });
});

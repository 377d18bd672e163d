import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StreamEvent } from "../neutral/stream-event.ts";
import { BlockSequencer, type BlockSink } from "./block-sequencer.ts";

interface Written {
  readonly kind: string;
  readonly id: string | null;
  text: string;
}

/** Collects blocks, and fails if two are open at once. */
function collect(events: readonly StreamEvent[], log: string[] = []): Written[] {
  const blocks: Written[] = [];
  let open: Written | null = null;
  const sink: BlockSink = {
    open(kind, tool) {
      expect(open).toBeNull();
      open = { kind, id: tool?.id ?? null, text: "" };
      blocks.push(open);
      log.push(`open ${tool?.id ?? kind}`);
    },
    delta(text) {
      if (open === null) throw new Error("a delta without a block");
      open.text += text;
      log.push(text);
    },
    citation: () => undefined,
    signature: () => undefined,
    search({ query }) {
      expect(open).toBeNull();
      log.push(`search ${query}`);
    },
    close() {
      expect(open).not.toBeNull();
      open = null;
      log.push("close");
    },
  };
  const sequencer = new BlockSequencer(sink);
  for (const event of events) expect(sequencer.take(event)).toBe(true);
  sequencer.finish();
  expect(open).toBeNull();
  return blocks;
}

const start = (key: number): StreamEvent => ({
  type: "tool_start",
  key,
  id: `call_${key}`,
  name: "f",
  isCustom: false,
  namespace: null,
  signature: null,
});
const delta = (key: number, text: string): StreamEvent => ({ type: "tool_delta", key, text });

describe("blocks of a stream", () => {
  it("count what waits, also calls without arguments: a provider may begin any number of them", () => {
    const nothing = () => undefined;
    const sequencer = new BlockSequencer({
      open: nothing,
      delta: nothing,
      citation: nothing,
      signature: nothing,
      search: nothing,
      close: nothing,
    });
    sequencer.take(start(0));
    expect(sequencer.waitedLength).toBe(0);
    for (let key = 1; key <= 50_000; key++) sequencer.take(start(key));
    expect(sequencer.waitedLength).toBeGreaterThan(50_000 * 100);
  });

  it("a call that was closed takes no more of what is sent under its key", () => {
    const blocks = collect([
      start(1),
      delta(1, "{}"),
      start(2),
      delta(1, "late"),
      delta(2, "{}"),
      start(1),
      delta(1, "[1]"),
    ]);
    expect(blocks.map(({ id, text }) => `${id} ${text}`)).toEqual(["call_1 {}", "call_2 {}", "call_1 [1]"]);
  });

  it("keep the text of every call, however the deltas are mixed", () => {
    const object = fc
      .dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 })
      .map((value) => JSON.stringify(value));
    const broken = fc.string({ maxLength: 20 }).filter((text) => !text.trimStart().startsWith("{"));
    const pieces = fc
      .tuple(fc.oneof(object, broken), fc.array(fc.nat({ max: 60 }), { maxLength: 5 }))
      .map(([text, cuts]) => {
        const at = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
        return at.slice(1).map((end, i) => text.slice(at[i], end));
      });
    const calls = fc.array(pieces, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(calls, fc.array(fc.nat(), { maxLength: 40 }), (texts, order) => {
        const queues = texts.map((parts, key) => [start(key), ...parts.map((text) => delta(key, text))]);
        const events: StreamEvent[] = queues.map((queue) => queue.shift() ?? start(0));
        for (const pick of order) {
          const event = queues[pick % queues.length]?.shift();
          if (event !== undefined) events.push(event);
        }
        events.push(...queues.flat());
        expect(collect(events).map((block) => block.text)).toEqual(texts.map((parts) => parts.join("")));
      }),
    );
  });

  it("let a call pass at once when the one before is complete", () => {
    const log: string[] = [];
    collect([start(0), delta(0, '{"a":"}"}'), start(1), delta(1, "{"), delta(1, "}")], log);
    expect(log).toEqual(["open call_0", '{"a":"}"}', "close", "open call_1", "{", "}", "close"]);
  });

  it("hold a call back as long as the one before is not complete", () => {
    const log: string[] = [];
    collect([start(0), delta(0, '{"a":'), start(1), delta(1, "{}"), delta(0, "1}")], log);
    expect(log).toEqual(["open call_0", '{"a":', "1}", "close", "open call_1", "{}", "close"]);
  });

  it("begin a new text after something else", () => {
    const events: StreamEvent[] = [
      { type: "reasoning", text: "a" },
      { type: "text", text: "b" },
      { type: "text", text: "c" },
      start(0),
      delta(0, "{}"),
      { type: "text", text: "d" },
      { type: "break" },
      { type: "text", text: "e" },
    ];
    expect(collect(events)).toEqual([
      { kind: "reasoning", id: null, text: "a" },
      { kind: "text", id: null, text: "bc" },
      { kind: "tool", id: "call_0", text: "{}" },
      { kind: "text", id: null, text: "d" },
      { kind: "text", id: null, text: "e" },
    ]);
  });
});

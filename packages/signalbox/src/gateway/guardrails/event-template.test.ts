import { describe, expect, it } from "vitest";
import { type JsonText, marksOf, pathOf, readJsonTexts } from "../../engines/text-scan/index.ts";
import { EventTemplate } from "./event-template.ts";
import { isNoText } from "./json-document.ts";

const EVENTS = [
  '{"id":"c","choices":[{"index":0,"delta":{"content":"The walrus"},"finish_reason":null}],"obfuscation":"aB3"}',
  '{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"The \\n\\"walrus\\""}}',
  '{"type":"response.output_text.delta","sequence_number": 41 ,"item_id":"m","output_index":0,"content_index":0,"delta":"The walrus","obfuscation":""}',
  '{"candidates":[{"content":{"parts":[{"text":"The walrus"}]}}],"usageMetadata":{"totalTokenCount":999999}}',
];
/** Pieces that end strings, begin members, or turn numbers into others. */
const PIECES = [
  '"',
  "\\",
  '\\"',
  ",",
  ":",
  "{",
  "}",
  "[",
  "]",
  " ",
  "0",
  "-1",
  "7",
  "e5",
  ".5",
  "a",
  "\n",
  "\\u0022",
  "\u0000",
  "é",
].concat([
  '","content":"x',
  '"}},{"index":1,"delta":{"content":"x',
  '"},"finish_reason":"stop","x":{"y":"',
  '"user"',
]);

const textsOf = (json: string): JsonText[] => readJsonTexts(json) ?? [];
const ownText = (texts: readonly JsonText[]) =>
  texts.findIndex(({ kind, text }) => kind === "value" && text.includes("walrus"));
const templateOf = (json: string) => {
  const texts = textsOf(json);
  const own = texts[ownText(texts)];
  if (own === undefined) throw new Error("the event has no text");
  return new EventTemplate(json, texts, own, texts.filter(isNoText));
};
const shown = (at: JsonText) => [at.kind, at.text, at.member, at.position, pathOf(at), marksOf(at.level)];

/** Numbers of a fixed seed, from 0 up to `below`. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe("an event of the form of another one", () => {
  it.each(EVENTS)("has the texts that are read from it as a whole: %s", (event) => {
    const template = templateOf(event);
    const before = textsOf(event);
    const own = ownText(before);
    const next = numbers(5);
    let read = 0;
    for (let i = 0; i < 20_000; i++) {
      const from = next(event.length);
      const piece = PIECES[next(PIECES.length)] ?? "";
      const json = event.slice(0, from) + piece + event.slice(from + next(4));
      const found = template.read(json);
      if (found === null) continue;
      read += 1;
      const texts = readJsonTexts(json);
      expect([json, texts === null]).toEqual([json, false]);
      const others = (list: readonly JsonText[]) =>
        list.flatMap((at, place) => (place === own || isNoText(at) ? [] : [shown(at)]));
      expect([json, others(texts ?? [])]).toEqual([json, others(before)]);
      const whole = texts?.[own];
      expect([json, found.text, found.start, found.end]).toEqual([
        json,
        whole?.text,
        whole?.start,
        whole?.end,
      ]);
      expect(shown(found)).toEqual(whole === undefined ? null : shown(whole));
    }
    expect(read).toBeGreaterThan(500);
  });

  it("is read with other texts, numbers and words that are none", () => {
    const [chat = "", , responses = ""] = EVENTS;
    expect(
      templateOf(chat).read(chat.replace("The walrus", String.raw`\u00e9 \"x\"`).replace("aB3", ""))?.text,
    ).toBe('é "x"');
    expect(templateOf(responses).read(responses.replace("41", "0").replace("The walrus", "x"))?.text).toBe(
      "x",
    );
  });

  it("is none with another place, a long number, a reason to finish or another member", () => {
    const [chat = "", , responses = "", gemini = ""] = EVENTS;
    for (const [event, other] of [
      [chat, chat.replace('"index":0', '"index":1')],
      [chat, chat.replace("null", '"stop"')],
      [chat, chat.replace('"content"', '"refusal"')],
      [chat, `${chat} {}`],
      [responses, responses.replace("41", "041")],
      [responses, responses.replace("41", "4111111111111111")],
      [responses, responses.replace('"output_index":0', '"output_index":1')],
      [gemini, gemini.replace("999999", "9999999")],
    ] as const) {
      expect(other).not.toBe(event);
      expect([other, templateOf(event).read(other)]).toEqual([other, null]);
    }
  });
});

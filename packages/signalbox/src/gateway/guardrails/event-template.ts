/**
 * The form of an event of a stream. Most events differ from the one before only in one text, in numbers and in what is no text: these are read by
 * comparing them with that event, which takes a fraction of the time.
 *
 * Invariant: an event that is read so has the texts that `readJsonTexts` would find, each at its place; all but the one text are those of the earlier
 * event. In doubt it is read as a whole.
 */
import { endOfString, type JsonText, MARKS } from "../../engines/text-scan/index.ts";

interface Gap {
  readonly kind: "text" | "other" | "number";
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
/** A string without escapes, and without what a string must not have. */
// eslint-disable-next-line no-control-regex
const PLAIN = /^[^\\\u0000-\u001f]*$/;
/** A longer number is a text. */
const NUMBER = /^\s*:\s*((?:0|[1-9]\d{0,5})(?=[\s,}]))/;
const NUMBER_HERE = /(?:0|[1-9]\d{0,5})(?=[\s,}])/y;

export class EventTemplate {
  readonly #text: JsonText;
  readonly #kinds: readonly Gap["kind"][];
  /** What stands before each gap, and behind the last one. */
  readonly #fixed: readonly string[];
  readonly #last: string;

  /** `text`: the one that differs; `others`: strings that are no text, whatever they are. */
  constructor(json: string, texts: readonly JsonText[], text: JsonText, others: readonly JsonText[]) {
    const gaps: Gap[] = [
      { kind: "text", start: text.start, end: text.end },
      ...others.map(({ start, end }): Gap => ({ kind: "other", start, end })),
      ...texts.flatMap((at) => numberBehind(json, at)),
    ];
    this.#text = text;
    gaps.sort((a, b) => a.start - b.start);
    let copied = 0;
    const fixed: string[] = [];
    for (const { start, end } of gaps) {
      fixed.push(copyOf(json.slice(copied, start)));
      copied = end;
    }
    this.#kinds = gaps.map(({ kind }) => kind);
    this.#fixed = fixed;
    this.#last = copyOf(json.slice(copied));
  }

  /** The text of an event of this form; null if it has another one. */
  read(json: string): JsonText | null {
    let at = 0;
    let found: JsonText | null = null;
    for (let i = 0; i < this.#kinds.length; i++) {
      const fixed = this.#fixed[i] ?? "";
      const start = at + fixed.length;
      // Faster than `startsWith`, by half.
      if (json.slice(at, start) !== fixed) return null;
      const kind = this.#kinds[i];
      if (kind === "number") {
        NUMBER_HERE.lastIndex = start;
        if (!NUMBER_HERE.test(json)) return null;
        at = NUMBER_HERE.lastIndex;
        continue;
      }
      if (json.charCodeAt(start) !== QUOTE) return null;
      at = endOfString(json, start) + 1;
      const text = at === 0 ? null : textBetween(json, start, at);
      if (text === null) return null;
      if (kind === "text") found = { ...this.#text, text, start, end: at };
    }
    return json.slice(at) === this.#last ? found : null;
  }
}

/** A part of a text keeps all of it in memory, and is slow to compare. */
function copyOf(text: string): string {
  // A half of a surrogate pair, which becomes another character, makes a form that no event has.
  return Buffer.from(text).toString();
}

/** A short number is no text; some tell texts apart. */
function numberBehind(json: string, { kind, text, end }: JsonText): Gap[] {
  if (kind !== "name" || MARKS.has(text)) return [];
  const found = NUMBER.exec(json.slice(end, end + 32));
  if (found === null) return [];
  const to = end + found[0].length;
  return [{ kind: "number", start: to - (found[1] ?? "").length, end: to }];
}

/** Null if it is no string of JSON. */
function textBetween(json: string, start: number, end: number): string | null {
  const raw = json.slice(start + 1, end - 1);
  if (PLAIN.test(raw)) return raw;
  try {
    return JSON.parse(json.slice(start, end)) as string;
  } catch {
    return null;
  }
}

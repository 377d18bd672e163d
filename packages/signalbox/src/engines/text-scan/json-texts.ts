/**
 * Visits every text of a JSON document, in the order of its bytes, without building values: strings, names of members and long numbers, and the
 * second of two members with one name, too, because readers differ in which one counts. Edits leave all other characters as they are.
 *
 * The document must be valid JSON: `readJsonTexts` returns null for what is not, because a reader could see another structure in it.
 */

/** An object or a list on the way to a text. */
export interface JsonLevel {
  readonly above: JsonLevel | null;
  readonly isList: boolean;
  /** The name of the member that it is, or its position in a list. */
  readonly name: string | number;
  /** Values of members that tell apart what several events continue. */
  mark: string;
}

export interface JsonText {
  readonly kind: "value" | "name" | "number";
  /** The text, without escapes. */
  readonly text: string;
  /** The nearest name: of the member itself, or of the member whose list contains it. */
  readonly member: string;
  /** Where it stands in the document, with its quotation marks. */
  readonly start: number;
  readonly end: number;
  readonly level: JsonLevel;
  /** Its position in a list; -1 in an object. */
  readonly position: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MAX_DEPTH = 200;
/** What is read in one piece, in UTF-16 code units. */
const SLICE = 64 * 1024;
const LETTER_U = 0x75;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f]/;
/** Shorter numbers are no card, phone or account. */
const MIN_DIGITS = 7;

/** Members that take a text, or the numbers of its tokens. */
const TOKEN_LISTS: ReadonlySet<string> = new Set(["input", "prompt"]);

/** Members that say which of several texts an event continues. */
export const MARKS: ReadonlySet<string> = new Set([
  "index",
  "output_index",
  "content_index",
  "summary_index",
  "contentBlockIndex",
  "item_id",
]);

/** Null when the document is not valid JSON. */
export function readJsonTexts(json: string): JsonText[] | null {
  if (json.length >= SLICE) {
    const slices = readJsonSlices(json);
    for (;;) {
      const { done, value } = slices.next();
      if (done === true) return value;
    }
  }
  try {
    JSON.parse(json);
  } catch {
    return null;
  }
  return visitTexts(json, null).next().value ?? null;
}

/** The same of a long document, in slices, between which other work may have its turn. */
export function* readJsonSlices(json: string): Generator<void, JsonText[] | null> {
  // A document is valid if its strings are, and if it is with an empty string in place of each.
  const structure: string[] = [];
  const texts = yield* visitTexts(json, structure);
  if (texts === null) return null;
  yield;
  try {
    JSON.parse(structure.join('""'));
    return texts;
  } catch {
    return null;
  }
}

/** The text of a string that stands between two positions; null if it is none. Takes slices of it. */
function* readString(json: string, start: number, end: number): Generator<void, string | null> {
  let text = "";
  for (let from = start; from < end;) {
    let to = Math.min(end, from + SLICE);
    const raw = json.slice(from, to);
    // No escape is cut in two.
    let next = 0;
    for (let at = raw.indexOf("\\"); at !== -1; at = raw.indexOf("\\", next))
      next = at + (json.charCodeAt(from + at + 1) === LETTER_U ? 6 : 2);
    to = Math.min(end, Math.max(to, from + next));
    const part = plainText(json.slice(from, to));
    if (part === null) return null;
    text += part;
    if (to < end) yield;
    from = to;
  }
  return text;
}

/** Null for what is no content of a string. */
function plainText(raw: string): string | null {
  try {
    return raw.includes("\\") || CONTROL.test(raw) ? (JSON.parse(`"${raw}"`) as string) : raw;
  } catch {
    return null;
  }
}

/**
 * `structure`: gets what stands between the strings of a document that was not checked; null for one that is known to be valid, which is visited in
 * one piece.
 */
function* visitTexts(json: string, structure: string[] | null): Generator<void, JsonText[] | null> {
  let copied = 0;
  let sliceEnd = SLICE;
  const texts: JsonText[] = [];
  let level: JsonLevel = { above: null, isList: true, name: "", mark: "" };
  let depth = 0;
  let name = "";
  let position = 0;
  const positions: number[] = [];
  for (let at = 0; at < json.length; at++) {
    if (structure !== null && at >= sliceEnd) {
      yield;
      sliceEnd = at + SLICE;
    }
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(json, at);
      if (end === -1) return null;
      let text: string | null;
      if (structure === null) {
        const raw = json.slice(at + 1, end);
        text = raw.includes("\\") ? (JSON.parse(json.slice(at, end + 1)) as string) : raw;
      } else {
        structure.push(json.slice(copied, at));
        copied = end + 1;
        text = end - at > SLICE ? yield* readString(json, at + 1, end) : plainText(json.slice(at + 1, end));
        if (text === null) return null;
      }
      let after = end + 1;
      while (isSpace(json.charCodeAt(after))) after += 1;
      if (!level.isList && json.charCodeAt(after) === 0x3a) {
        name = text;
        texts.push({ kind: "name", text, member: name, start: at, end: end + 1, level, position: -1 });
      } else {
        if (!level.isList && MARKS.has(name)) level.mark += `${name}=${text};`;
        texts.push({
          kind: "value",
          text,
          member: level.isList ? memberOf(level) : name,
          start: at,
          end: end + 1,
          level,
          position: level.isList ? position : -1,
        });
      }
      at = end;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > MAX_DEPTH) return null;
      positions.push(position);
      level = { above: level, isList: code === 0x5b, name: level.isList ? position : name, mark: "" };
      position = 0;
    } else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
      level = level.above ?? level;
      position = positions.pop() ?? 0;
    } else if (code === 0x2c) position += 1;
    else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      let end = at + 1;
      while (isNumeric(json.charCodeAt(end))) end += 1;
      const text = json.slice(at, end);
      const member = level.isList ? memberOf(level) : name;
      if (!level.isList && MARKS.has(name)) level.mark += `${name}=${text};`;
      if ((end - at >= MIN_DIGITS && isWhole(text)) || (level.isList && TOKEN_LISTS.has(member)))
        texts.push({
          kind: "number",
          text,
          member,
          start: at,
          end,
          level,
          position: level.isList ? position : -1,
        });
      at = end - 1;
    }
  }
  structure?.push(json.slice(copied));
  return texts;
}

/** The names on the way to a text: `choices.0.delta.content`. */
export function pathOf({ kind, level, member, position }: JsonText): string {
  let path = kind === "name" ? "" : level.isList ? String(position) : member;
  for (let at: JsonLevel | null = level; at !== null && at.above !== null; at = at.above)
    path = at.above.above === null ? path : `${at.name}.${path}`;
  return path;
}

/** The marks on the way to a level, the outermost first. */
export function marksOf(level: JsonLevel): string {
  let marks = "";
  for (let at: JsonLevel | null = level; at !== null; at = at.above)
    if (at.mark !== "") marks = `${at.mark}/${marks}`;
  return marks;
}

/** The document with other texts. `edits` are ordered. */
export function editJson(
  json: string,
  edits: readonly { readonly at: JsonText; readonly text: string }[],
): string {
  let edited = "";
  let copied = 0;
  for (const { at, text } of edits) {
    edited += json.slice(copied, at.start) + JSON.stringify(text);
    copied = at.end;
  }
  return edited + json.slice(copied);
}

function memberOf(level: JsonLevel): string {
  let at: JsonLevel = level;
  while (typeof at.name === "number" && at.above !== null) at = at.above;
  return String(at.name);
}

/** Where the string that begins at `start` has its last quotation mark; -1 if it has none. */
export function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (json.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0 || end === -1) return end;
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function isWhole(text: string): boolean {
  return !/[.eE]/.test(text);
}

function isNumeric(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) ||
    code === 0x2e ||
    code === 0x2b ||
    code === 0x2d ||
    (code | 0x20) === 0x65
  );
}

/**
 * Finds its way in JSON bytes without building the values: for bodies too large to parse, parts of bodies, and bodies of which one
 * member is needed.
 *
 * The functions do not validate. On text that `JSON.parse` accepts they agree with it; on other text they return -1, or a position or
 * members that a caller must check. They never throw and never read past the end.
 */
export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COLON = 0x3a;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
/** Keys and short values end within this many bytes, where a loop costs less than the call of a native search. */
const NEAR_BYTES = 48;

/** Index of the first byte from `from` on that is not white space; the length of `bytes` when there is none. */
export function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (isSpace(bytes[at])) at += 1;
  return at;
}

/** Index of the quotation mark that ends the string whose opening mark is at `start`; -1 when there is none. */
export function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  for (const near = Math.min(at + NEAR_BYTES, bytes.length); at < near; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at += 1;
  }
  for (let end = bytes.indexOf(QUOTE, at); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let backslashes = 0;
    while (bytes[end - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return -1;
}

/** Index of the bracket that closes the object or array that `from` is inside of; -1 when there is none. */
export function endOfLevel(bytes: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      if (at === -1) return -1;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 0) return at;
      depth -= 1;
    }
  }
  return -1;
}

/** Objects of settings are small; larger ones are content, and are not parsed. */
const MAX_OBJECT_BYTES = 64 * 1024;

/**
 * The wanted members of the outermost object whose values are strings, numbers, booleans, null or small objects. Reads the beginning of an
 * object as well: a text that is cut off or malformed gives the members that are complete before that point.
 */
export function readMembers(bytes: Buffer, wanted: ReadonlySet<string>): Map<string, unknown> {
  const found = new Map<string, unknown>();
  scanMembers(bytes, (key, start, end) => {
    if (!wanted.has(key)) return;
    // As in `JSON.parse`, the last of several members with one name counts.
    if (isOpening(bytes[start]) && (bytes[start] === OPEN_BRACKET || end - start > MAX_OBJECT_BYTES))
      found.delete(key);
    else found.set(key, parse(bytes, start, end));
  });
  return found;
}

/** A string value whose end is not in the bytes. */
export interface UnfinishedString {
  readonly member: string;
  readonly start: number;
}

/**
 * Calls `visit` for each string value of at least `minBytes`, at any depth, with the name of its nearest member (elements of an array have
 * that of the array) and the position of its text. Reads JSON, lines of JSON, and the beginning of either. Returns the string that the end
 * of the bytes cuts off, or null.
 */
export function visitStrings(
  bytes: Buffer,
  minBytes: number,
  visit: (member: string, start: number, end: number) => void,
): UnfinishedString | null {
  let member = "";
  for (let at = bytes.indexOf(QUOTE); at !== -1;) {
    const end = endOfString(bytes, at);
    if (end === -1) return { member, start: at + 1 };
    if (bytes[skipSpace(bytes, end + 1)] === COLON)
      member = bytes.toString("latin1", at + 1, Math.min(end, at + 65));
    else if (end - at - 1 >= minBytes) visit(member, at + 1, end);
    at = bytes.indexOf(QUOTE, end + 1);
  }
  return null;
}

/** What takes the place of a member: another one, with its value as JSON text, or nothing. */
export type MemberEdit = { readonly name: string; readonly json: string } | null;

/**
 * The bytes with the named members of the outermost object replaced or removed; all other bytes are kept. Every member of a name is
 * edited, because readers differ in which of several counts.
 */
export function editMembers(bytes: Buffer, edits: ReadonlyMap<string, MemberEdit>): Buffer {
  const members: {
    readonly key: string;
    readonly from: number;
    readonly start: number;
    readonly end: number;
  }[] = [];
  scanMembers(bytes, (key, start, end, from) => {
    members.push({ key, from, start, end });
  });
  const lastKept = members.findLastIndex(({ key }) => edits.get(key) !== null);
  const parts: Buffer[] = [];
  let copied = 0;
  const replace = (from: number, end: number, text: string) => {
    parts.push(bytes.subarray(copied, from), Buffer.from(text));
    copied = end;
  };
  members.forEach(({ key, from, start, end }, i) => {
    const edit = edits.get(key);
    if (edit === undefined || i > lastKept) return;
    // A removed member takes the comma after it along.
    if (edit === null) replace(from, members[i + 1]?.from ?? end + 1, "");
    else if (edit.name === key) replace(start, end + 1, edit.json);
    else replace(from, end + 1, `${JSON.stringify(edit.name)}:${edit.json}`);
  });
  // Removed members at the end take the comma before them along.
  const end = members.at(-1)?.end ?? 0;
  const first = members[lastKept + 1];
  if (first !== undefined)
    replace(lastKept === -1 ? first.from : (members[lastKept]?.end ?? 0) + 1, end + 1, "");
  return copied === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(copied)]);
}

/** Calls `visit` for each complete member of the outermost object. */
function scanMembers(bytes: Buffer, visit: MemberVisitor): void {
  const open = skipSpace(bytes, 0);
  if (bytes[open] !== OPEN_BRACE) return;
  let at = skipSpace(bytes, open + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = endOfString(bytes, at);
    const colon = keyEnd === -1 ? -1 : skipSpace(bytes, keyEnd + 1);
    if (bytes[colon] !== COLON) return;
    const start = skipSpace(bytes, colon + 1);
    const end = endOfValue(bytes, start);
    if (end === -1) return;
    const key = parse(bytes, at, keyEnd);
    if (typeof key === "string") visit(key, start, end, at);
    const comma = skipSpace(bytes, end + 1);
    if (bytes[comma] !== COMMA) return;
    at = skipSpace(bytes, comma + 1);
  }
}

/** Receives the key, the first and the last byte of the value, and the first byte of the key. */
type MemberVisitor = (key: string, start: number, end: number, from: number) => void;
export interface Member {
  readonly name: string;
  readonly value: unknown;
}

/**
 * Every member of an object whose name is wanted, in order, also several with one name. Null when the text is not one whole object: it is cut off or
 * malformed, or other text follows. The values of unwanted members are not checked beyond their ends.
 */
export function readEachMember(bytes: Buffer, isWanted: (name: string) => boolean): Member[] | null {
  const found: Member[] = [];
  const open = skipSpace(bytes, 0);
  if (bytes[open] !== OPEN_BRACE) return null;
  let at = skipSpace(bytes, open + 1);
  if (bytes[at] === CLOSE_BRACE) return skipSpace(bytes, at + 1) === bytes.length ? found : null;
  for (;;) {
    const keyEnd = bytes[at] === QUOTE ? endOfString(bytes, at) : -1;
    const colon = keyEnd === -1 ? -1 : skipSpace(bytes, keyEnd + 1);
    if (bytes[colon] !== COLON) return null;
    const start = skipSpace(bytes, colon + 1);
    const end = endOfValue(bytes, start);
    const name = end === -1 ? undefined : parse(bytes, at, keyEnd);
    if (typeof name !== "string") return null;
    if (isWanted(name)) {
      const value = parse(bytes, start, end);
      if (value === undefined) return null;
      found.push({ name, value });
    }
    const next = skipSpace(bytes, end + 1);
    if (bytes[next] === CLOSE_BRACE) return skipSpace(bytes, next + 1) === bytes.length ? found : null;
    if (bytes[next] !== COMMA) return null;
    at = skipSpace(bytes, next + 1);
  }
}

/** Index of the last byte of the member value that begins at `start`; -1 when the value is cut off. */
function endOfValue(bytes: Buffer, start: number): number {
  if (bytes[start] === QUOTE) return endOfString(bytes, start);
  if (isOpening(bytes[start])) return endOfLevel(bytes, start + 1);
  let at = start;
  while (at < bytes.length && !isSpace(bytes[at]) && bytes[at] !== COMMA && bytes[at] !== CLOSE_BRACE)
    at += 1;
  return at === bytes.length || at === start ? -1 : at - 1;
}

function parse(bytes: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(bytes.toString("utf8", start, end + 1));
  } catch {
    return undefined;
  }
}

function isOpening(byte: number | undefined): boolean {
  return byte === OPEN_BRACE || byte === OPEN_BRACKET;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

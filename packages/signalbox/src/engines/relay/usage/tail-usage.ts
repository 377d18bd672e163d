/**
 * Usage out of a whole JSON body without parsing the rest of it: nearly every provider writes it near the end, and building the objects and
 * texts of an answer only to throw them away was a fifth of the garbage of a call.
 *
 * Invariant: a result is what parsing the whole body would have given. Whatever cannot be proved from the tail alone is left to that.
 */
import type { CallUsage } from "../../call-log/call-log.ts";
import { readUsageFields } from "./read-usage.ts";

const KEY = '"usage"';
/** Goes before `usage` where an object has both. */
const STRONGER_KEY = '"usageMetadata"';
/** More than any provider's usage, or than what follows it, takes. */
const MAX_TAIL_BYTES = 4096;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** The `usage` object among the outermost object's own members; null when it takes a parser to know. */
export function readTailUsage(bytes: Buffer): CallUsage | null {
  const key = bytes.lastIndexOf(KEY, undefined, "latin1");
  if (key === -1 || bytes.length - key > MAX_TAIL_BYTES) return null;
  // A text never holds a bare quote, so this is a whole string; with a colon behind it, a key.
  const colon = skipSpace(bytes, key + KEY.length);
  if (bytes[key - 1] === BACKSLASH || bytes[colon] !== COLON) return null;
  const start = skipSpace(bytes, colon + 1);
  if (bytes[start] !== OPEN_BRACE) return null;
  const end = endOfLevel(bytes, start + 1);
  // What follows must close one level, the outermost object, and nothing may come after it: then the key belongs to it.
  const last = end === -1 ? -1 : endOfLevel(bytes, end + 1);
  if (last === -1 || bytes[last] !== CLOSE_BRACE || skipSpace(bytes, last + 1) !== bytes.length) return null;
  if (bytes.includes(STRONGER_KEY, 0, "latin1")) return null;
  try {
    return readUsageFields(JSON.parse(bytes.toString("utf8", start, end + 1)) as Record<string, unknown>);
  } catch {
    return null;
  }
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

/** Index of the bracket that closes the level that `from` is in; -1 when there is none. */
function endOfLevel(bytes: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfText(bytes, at + 1);
      if (at === -1) return -1;
    } else if (byte === OPEN_BRACE || byte === 0x5b) {
      depth += 1;
    } else if (byte === CLOSE_BRACE || byte === 0x5d) {
      if (depth === 0) return at;
      depth -= 1;
    }
  }
  return -1;
}

/** Index of the quote that ends the text that `from` is in; -1 when there is none. */
function endOfText(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at += 1;
  }
  return -1;
}

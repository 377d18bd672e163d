/**
 * Finds usage in a piece of JSON that cannot be parsed whole, because its beginning was let go: the last usage object in the piece.
 *
 * Inside a JSON string every quotation mark is escaped, so an unescaped `"usage":{` is a real member name; an answer that talks
 * about `"usage"` cannot be mistaken for it.
 */
import { isUtf8 } from "node:buffer";
import { readUsageFields, type UsageSighting } from "./read-usage.ts";

const MARKER = '"usage';
const MEMBER = /^"usage(?:Metadata)?"\s*:\s*\{/;
/** A usage object is a few hundred bytes; an object longer than this is something else. */
const MAX_OBJECT_BYTES = 16 * 1024;
const MODEL = /(?<!\\)"model(?:Version)?"\s*:\s*"([^"\\]{1,256})"/;

/** True when the line or body holds a usage member with an object (not null) in it. */
export function hasUsage(bytes: Buffer): boolean {
  return lastUsageAt(bytes) !== -1;
}

export function scanUsage(bytes: Buffer): UsageSighting {
  return { usage: scanCounts(bytes), model: scanModel(bytes) };
}

export function scanModel(bytes: Buffer): string | null {
  return MODEL.exec(bytes.toString(isUtf8(bytes) ? "utf8" : "latin1"))?.[1] ?? null;
}

function scanCounts(bytes: Buffer) {
  const at = lastUsageAt(bytes);
  if (at === -1) return null;
  const start = bytes.indexOf("{", at, "latin1");
  const text = balancedObject(bytes.toString("utf8", start, start + MAX_OBJECT_BYTES));
  if (text === null) return null;
  try {
    return readUsageFields(JSON.parse(text) as Record<string, unknown>);
  } catch {
    return null;
  }
}

/** Where the last usage member begins, or -1. */
function lastUsageAt(bytes: Buffer): number {
  for (let at = bytes.lastIndexOf(MARKER, undefined, "latin1"); at !== -1;) {
    // Long enough for `"usageMetadata"`, a colon and some blanks.
    if (bytes[at - 1] !== 0x5c && MEMBER.test(bytes.toString("latin1", at, at + 48))) return at;
    // Negative offsets count from the end, so the search must stop by itself at the beginning.
    if (at === 0) return -1;
    at = bytes.lastIndexOf(MARKER, at - 1, "latin1");
  }
  return -1;
}

/** The object that the text begins with, or null when it does not end within the text. */
function balancedObject(text: string): string | null {
  let depth = 0;
  let isInString = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (isInString) {
      if (char === "\\") i++;
      else if (char === '"') isInString = false;
    } else if (char === '"') isInString = true;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) return text.slice(0, i + 1);
  }
  return null;
}

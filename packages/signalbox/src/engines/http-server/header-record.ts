/**
 * The headers of a request by name, as node:http makes them from the raw list: names in lower case; of a header that may occur once the first
 * value counts; values of others are joined.
 */
import type { IncomingHttpHeaders } from "node:http";

/** A second value is ignored. */
const SINGLE: ReadonlySet<string> = new Set([
  "age",
  "authorization",
  "content-length",
  "content-type",
  "etag",
  "expires",
  "from",
  "host",
  "if-modified-since",
  "if-unmodified-since",
  "last-modified",
  "location",
  "max-forwards",
  "proxy-authorization",
  "referer",
  "retry-after",
  "server",
  "user-agent",
]);

export function toHeaderRecord(rawHeaders: readonly string[]): IncomingHttpHeaders {
  const record: Record<string, string | string[] | undefined> = {};
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = lowerCase(rawHeaders[i] as string);
    const value = rawHeaders[i + 1] as string;
    const earlier = record[name];
    if (name === "set-cookie") {
      if (Array.isArray(earlier)) earlier.push(value);
      else record[name] = [value];
    } else if (typeof earlier !== "string") {
      // A name such as `constructor` is a property of every object.
      record[name] = value;
    } else if (!SINGLE.has(name)) {
      record[name] = earlier + (name === "cookie" ? "; " : ", ") + value;
    }
  }
  return record;
}

/** Spellings that were seen: those of clients are few. */
const lowered = new Map<string, string>();
const MAX_REMEMBERED = 500;
const MAX_REMEMBERED_LENGTH = 40;

function lowerCase(name: string): string {
  const known = lowered.get(name);
  if (known !== undefined) return known;
  if (lowered.size >= MAX_REMEMBERED || name.length > MAX_REMEMBERED_LENGTH) return name.toLowerCase();
  // A copy: a slice would keep the whole head in memory.
  const copy = Buffer.from(name, "latin1").toString("latin1");
  const lower = copy.toLowerCase();
  lowered.set(copy, lower);
  return lower;
}

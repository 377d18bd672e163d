/**
 * Finds the little the gateway must know of a JSON request body: the model and its output limit.
 *
 * Small bodies are parsed, which also tells whether they are JSON at all. Large ones (long conversations, images) are scanned for
 * top-level keys only: parsing megabytes would hold up every other call.
 */
import { SignalboxError } from "@signalbox/protocol";

export interface BodyFacts {
  readonly model: string | null;
  readonly maxOutputTokens: number | null;
}

export const NO_FACTS: BodyFacts = { model: null, maxOutputTokens: null };

const PARSE_LIMIT = 256 * 1024;
const WANTED = new Set(["model", "max_tokens", "max_completion_tokens", "max_output_tokens"]);

/** Throws `gateway_malformed_request` when the body is not a JSON object and `mustBeJson` says it has to be. */
export function inspectBody(bytes: Buffer, mustBeJson: boolean): BodyFacts {
  if (bytes.length > PARSE_LIMIT) return inspectStart(bytes);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    if (mustBeJson) throw malformed("The body is not valid JSON");
    return NO_FACTS;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    if (mustBeJson) throw malformed("The body must be a JSON object");
    return NO_FACTS;
  }
  return toFacts(value as Record<string, unknown>);
}

/** What the beginning of a JSON object says. */
export function inspectStart(bytes: Buffer): BodyFacts {
  return toFacts(scanTopLevel(bytes));
}

export function malformed(message: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message });
}

function toFacts(fields: Readonly<Record<string, unknown>>): BodyFacts {
  const limit = fields["max_completion_tokens"] ?? fields["max_output_tokens"] ?? fields["max_tokens"];
  return {
    model: typeof fields["model"] === "string" ? fields["model"] : null,

    maxOutputTokens: typeof limit === "number" && limit >= 0 ? limit : null,
  };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The wanted members of the outermost object, found without building the rest. Malformed text gives what was found until then. */
export function scanTopLevel(bytes: Buffer): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  let depth = 0;
  let key: string | null = null;
  let expectsKey = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      const end = endOfString(bytes, at);
      if (end === -1) return found;
      if (depth === 1) {
        if (expectsKey) key = stringAt(bytes, at, end);
        else if (key !== null && WANTED.has(key)) found[key] = stringAt(bytes, at, end);
      }
      at = end;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      expectsKey = byte === 0x7b && depth === 1;
      if (depth === 1 && byte === 0x5b) return found;
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
      if (depth === 0) return found;
    } else if (depth === 1) {
      if (byte === 0x2c) {
        expectsKey = true;
        key = null;
      } else if (byte === 0x3a) {
        expectsKey = false;
      } else if (
        !expectsKey &&
        key !== null &&
        WANTED.has(key) &&
        !(key in found) &&
        byte !== undefined &&
        byte > 0x20
      ) {
        found[key] = primitiveAt(bytes, at);
      }
    }
  }
  return found;
}

/** Index of the closing quote of the string that starts at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

function stringAt(bytes: Buffer, start: number, end: number): string | null {
  try {
    return JSON.parse(bytes.toString("utf8", start, end + 1)) as string;
  } catch {
    return null;
  }
}

/** A number, `true`, `false` or `null`. */
function primitiveAt(bytes: Buffer, start: number): unknown {
  const text = /^[\w.+-]+/.exec(bytes.toString("latin1", start, start + 32))?.[0] ?? "";
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

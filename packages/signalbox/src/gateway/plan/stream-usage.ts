/**
 * Asks for the usage of a chat stream whose caller did not, and removes what that adds to the stream.
 *
 * OpenAI-shaped APIs report the usage of a stream only with `stream_options.include_usage`, in one more event without choices before the
 * end. Most clients do not ask; without the event a call's cost could only be estimated. Every other byte of the stream is passed on.
 * See gateway/README.md.
 */
import { isFields } from "../../core/fields.ts";
import { editMembers, type RequestBody, type ResponseHead } from "../../engines/relay/index.ts";
import type { Provider } from "../providers/provider.ts";
import type { ResponseFilter } from "../step/step.ts";

export interface StreamUsageRequest {
  readonly body: RequestBody;
  /** Null for a response that is no stream. */
  readonly filter: (head: ResponseHead) => ResponseFilter | null;
}

const INCLUDE_USAGE = { include_usage: true };
const MEMBER = Buffer.from(`"stream_options":${JSON.stringify(INCLUDE_USAGE)},`);
const OPEN_BRACE = 0x7b;
const EVENT_STREAM = /^\s*text\/event-stream/i;

/** Null when the provider does not take the option, or the body cannot be changed. */
export function requestStreamUsage(
  provider: Provider,
  model: string,
  body: RequestBody,
): StreamUsageRequest | null {
  if (body.kind !== "whole" || !takesStreamUsage(provider, model)) return null;
  const filter = ({ contentType }: ResponseHead) =>
    EVENT_STREAM.test(contentType) ? new UsageEventRemover() : null;
  return { body: { kind: "whole", bytes: addOption(body.bytes) }, filter };
}

function takesStreamUsage(provider: Provider, model: string): boolean {
  // It states its usage in any case.
  if (provider.slug === "echo") return false;
  try {
    const api = provider.apisFor(model).calls.find(({ dialect }) => dialect === "chat");
    return api !== undefined && api.traits?.streamUsage !== false;
  } catch {
    // A cloud without a configured place: the caller named the place in the path of its OpenAI-shaped API, which takes the option.
    return true;
  }
}

function addOption(bytes: Buffer): Buffer {
  const given = readOptions(bytes);
  if (given !== undefined) {
    const json = JSON.stringify(isFields(given) ? { ...given, ...INCLUDE_USAGE } : INCLUDE_USAGE);
    return editMembers(bytes, new Map([["stream_options", { name: "stream_options", json }]]));
  }
  const open = bytes.indexOf(OPEN_BRACE);
  return Buffer.concat([bytes.subarray(0, open + 1), MEMBER, bytes.subarray(open + 1)]);
}

/** The value of `stream_options`; undefined when the body has none. Bodies that name it are rare, and are parsed a second time. */
function readOptions(bytes: Buffer): unknown {
  if (!bytes.includes("stream_options", 0, "latin1")) return undefined;
  return (JSON.parse(bytes.toString("utf8")) as Record<string, unknown>)["stream_options"];
}

const LINE_FEED = 0x0a;
const RETURN = 0x0d;
/** The end of `"prompt_tokens"`. The native search looks for the first byte, and a `k` is rarer in events than a quotation mark. */
const USAGE_MEMBER = Buffer.from('kens"');
/** Longer lines are not the event with the usage. */
const MAX_LINE_BYTES = 8 * 1024;
const NO_BYTES = Buffer.from("");

/**
 * Removes the event that has usage and no choices. The end of a read that is not a whole line is kept until the rest of the line arrives:
 * a client could not use the part. The blank line after a removed event is removed as well.
 */
class UsageEventRemover implements ResponseFilter {
  #unfinished: Buffer = NO_BYTES;
  /** The line that is being passed on is too long to be kept. */
  #isInLongLine = false;
  /** The last line was removed: a blank line that follows belongs to it. */
  #isAfterRemoved = false;

  push(chunk: Buffer, isLast: boolean): Buffer {
    const bytes = this.#unfinished.length === 0 ? chunk : Buffer.concat([this.#unfinished, chunk]);
    const end = isLast ? bytes.length : bytes.lastIndexOf(LINE_FEED) + 1;
    const lines = bytes.subarray(0, end);
    const rest = bytes.subarray(end);
    this.#unfinished = NO_BYTES;
    if (rest.length === 0) return this.#filter(lines);
    if (this.#isInLongLine && end === 0) return bytes;
    const passed = this.#filter(lines);
    if (rest.length <= MAX_LINE_BYTES) {
      // A copy, because the bytes share their memory with those of other calls.
      this.#unfinished = Buffer.from(rest);
      return passed;
    }
    this.#isInLongLine = true;
    return passed.length === lines.length ? bytes : Buffer.concat([passed, rest]);
  }

  /** Whole lines, except at the end of the stream. Only lines that may be the event are looked at: a read may have hundreds. */
  #filter(bytes: Buffer): Buffer {
    if (bytes.length === 0) return bytes;
    const isEndOfLong = this.#isInLongLine;
    this.#isInLongLine = false;
    let kept = this.#isAfterRemoved ? bytes.subarray(blankLength(bytes, 0)) : bytes;
    this.#isAfterRemoved = false;
    for (let at = kept.indexOf(USAGE_MEMBER); at !== -1;) {
      const start = kept.lastIndexOf(LINE_FEED, at) + 1;
      const newline = kept.indexOf(LINE_FEED, at);
      const end = newline === -1 ? kept.length : newline + 1;
      const isRemoved = !(isEndOfLong && start === 0) && isUsageEvent(kept.subarray(start, end));
      if (isRemoved) {
        this.#isAfterRemoved = end === kept.length;
        // What follows is moved, not copied: usually only the end of the stream follows, and a copy would be as large as the stream.
        const next = end + blankLength(kept, end);
        kept = kept.copyWithin(start, next).subarray(0, kept.length - (next - start));
      }
      at = kept.indexOf(USAGE_MEMBER, isRemoved ? start : end);
    }
    return kept;
  }
}

/** The length of a blank line at this position; 0 if there is none. */
function blankLength(bytes: Buffer, at: number): number {
  if (bytes[at] === LINE_FEED) return 1;
  return bytes[at] === RETURN && bytes[at + 1] === LINE_FEED ? 2 : 0;
}

function isUsageEvent(line: Buffer): boolean {
  if (!line.includes('"usage"', 0, "latin1") || line.length > MAX_LINE_BYTES) return false;
  const text = line.toString("utf8");
  if (!text.startsWith("data:")) return false;
  try {
    const { choices, usage } = JSON.parse(text.slice(5)) as Record<string, unknown>;
    return Array.isArray(choices) && choices.length === 0 && isFields(usage);
  } catch {
    return false;
  }
}

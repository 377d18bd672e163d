/**
 * Whether a response with a success status is an answer. Providers, and servers in front of them, send errors, pages and nothing with 200, and end streams
 * in the middle of an answer. Such a response is no success in the call log, counts against its target, is not cached, and is a reason for the next
 * step as long as nothing of it went to the client.
 *
 * What is not known is an answer: a body is judged only if it is JSON, a page, or a stream (server-sent events, lines of JSON, messages of Amazon's) whose
 * last event is of a known API.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";
import { type AttemptFailure, inBandFailure } from "./attempt-failure.ts";
import { AwsAnswer, isAwsStream } from "./aws-answer.ts";
import { EventSplitter, hasError, isErrorEvent, type StreamEvent } from "./stream-events.ts";

/** Enough for the last events of every API; a longer last event is that of OpenAI Responses, which repeats the answer. */
const TAIL_BYTES = 2048;

/** Of a stream that is not larger, all events are examined. */
const SMALL_BYTES = 16 * 1024;

type Form = "stream" | "lines" | "aws" | "json" | "page" | "text" | "other";

/** As providers spell them. */
const USUAL_TYPES: ReadonlyMap<string, Form> = new Map([
  ["application/json", "json"],
  ["application/json; charset=utf-8", "json"],
  ["application/json; charset=UTF-8", "json"],
  ["text/event-stream", "stream"],
  ["text/event-stream; charset=utf-8", "stream"],
]);

function formOf(contentType: string): Form {
  const usual = USUAL_TYPES.get(contentType);
  if (usual !== undefined) return usual;
  const type = (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
  if (type === "text/event-stream") return "stream";
  if (type === "text/html") return "page";
  if (type === "text/plain") return "text";
  if (isAwsStream(type)) return "aws";
  if (isLines(type)) return "lines";
  return type.endsWith("json") ? "json" : "other";
}

const LINES = /^application\/(?:(?:x-)?ndjson|(?:x-)?jsonl|stream\+json)\s*(?:;|$)/i;

/** One JSON object per line, as Ollama and Cohere stream. */
export function isLines(contentType: string): boolean {
  return LINES.test(contentType);
}

/** Bytes of JSON that tell an error from an answer. */
const START_BYTES = 64;
/** Chunks are slices of memory that calls share, and a slice keeps all of it: more of them are copied together. */
const MAX_SLICES = 8;

/** The beginning and the end of a response that passes. */
export class PassingEnds {
  #first: Buffer | null = null;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #bytes = 0;
  readonly #head: ResponseHead;
  readonly #form: Form;
  /** Messages have lengths: their boundaries are not found from the end. */
  readonly #aws: AwsAnswer | null;

  constructor(head: ResponseHead) {
    this.#head = head;
    this.#form = formOf(head.contentType);
    this.#aws = this.#form === "aws" ? new AwsAnswer() : null;
  }

  push(chunk: Buffer): void {
    if (this.#aws !== null) {
      this.#aws.push(chunk);
      return;
    }
    this.#first ??= chunk;
    this.#bytes += chunk.length;
    this.#tailBytes += chunk.length;
    this.#tail.push(chunk);
    if (this.#tail.length <= MAX_SLICES) return;
    if (this.#first.length > START_BYTES) this.#first = Buffer.from(this.#first.subarray(0, START_BYTES));
    let slice = this.#tail[0];
    while (slice !== undefined && this.#tailBytes - slice.length >= TAIL_BYTES) {
      this.#tailBytes -= slice.length;
      this.#tail.shift();
      slice = this.#tail[0];
    }
    this.#tail = [Buffer.concat(this.#tail)];
  }

  /** Asked once, when the last byte has arrived. Null for an answer. */
  fault(): AttemptFailure | null {
    const { status } = this.#head;
    if (this.#aws !== null) return this.#aws.fault(status);
    const [only] = this.#tail;
    const tail = this.#tail.length === 1 && only !== undefined ? only : Buffer.concat(this.#tail);
    const isWhole = this.#tailBytes === this.#bytes;
    switch (this.#form) {
      case "page":
        return inBandFailure(status, "the response is a page");
      case "lines":
        return linesFault(status, isWhole ? tail : tail.subarray(-TAIL_BYTES), isWhole);
      case "stream":
        return isWhole && tail.length <= SMALL_BYTES
          ? streamFault(status, tail, true)
          : streamFault(status, tail.subarray(-TAIL_BYTES), false);
      case "json":
        return jsonFault(status, isWhole ? tail : (this.#first ?? tail), tail);
      case "text":
        // The transcription of silence is empty.
        return null;
      default:
        return this.#bytes === 0 ? inBandFailure(status, "the response is empty") : null;
    }
  }
}

/** The same for a response that is in memory. Here every event of a stream is examined, and JSON is parsed. */
export function faultOf({ contentType, status }: ResponseHead, body: Buffer): AttemptFailure | null {
  switch (formOf(contentType)) {
    case "page":
      return inBandFailure(status, "the response is a page");
    case "stream":
      return streamFault(status, body, true);
    case "lines":
      return linesFault(status, body, true);
    case "aws":
      return awsFault(status, body);
    case "json":
      return jsonFault(status, body, body) ?? parsedFault(status, body);
    case "text":
      return null;
    default:
      return body.length === 0 ? inBandFailure(status, "the response is empty") : null;
  }
}

const DONE = "data: [DONE]";

/** Most streams end like this, and nothing in them speaks of an error: their events need not be told apart, which takes a third of the time of the call. */
function isPlainStream(bytes: Buffer): boolean {
  const end = bytes.toString("latin1", Math.max(0, bytes.length - DONE.length - 4)).trimEnd();
  return (
    end.endsWith(DONE) &&
    !bytes.includes("error", 0, "latin1") &&
    !bytes.includes("response.failed", 0, "latin1")
  );
}

/** `isWhole`: the bytes are the whole stream, and not its end, which may begin within an event. */
function streamFault(status: number, bytes: Buffer, isWhole: boolean): AttemptFailure | null {
  if (isPlainStream(bytes)) return null;
  const events = new EventSplitter().push(isWhole ? bytes : afterFirstEvent(bytes), true);
  const failed = events.find(isErrorEvent);
  if (failed !== undefined) return inBandFailure(status, `error event: ${failed.data.slice(0, 200)}`);
  if (events.length === 0) return isWhole ? inBandFailure(status, "the stream ended without content") : null;
  return isEnded(events) ? null : inBandFailure(status, "the stream ended in the middle of the answer", true);
}

function awsFault(status: number, body: Buffer): AttemptFailure | null {
  const answer = new AwsAnswer();
  answer.push(body);
  return answer.fault(status);
}

/** `isWhole` as for a stream. */
function linesFault(status: number, bytes: Buffer, isWhole: boolean): AttemptFailure | null {
  const lines = bytes
    .toString("utf8")
    .split("\n")
    .slice(isWhole ? 0 : 1)
    .filter((line) => line.trim() !== "");
  const last = lines.at(-1);
  if (last === undefined) return isWhole ? inBandFailure(status, "the stream ended without content") : null;
  const failed = lines.find((line) => line.includes('"error"') && hasError(parse(line)));
  if (failed !== undefined) return inBandFailure(status, `error line: ${failed.slice(0, 200)}`);
  const value = parse(last);
  // Ollama's and Cohere's marks.
  const isOpen = value === null || value["done"] === false || value["is_finished"] === false;
  return isOpen ? inBandFailure(status, "the stream ended in the middle of the answer", true) : null;
}

/** Drops the event that the bytes begin in. */
function afterFirstEvent(bytes: Buffer): Buffer {
  const text = bytes.toString("latin1");
  const boundary = /\r\n\r\n|\n\n|\r\r/.exec(text);
  return boundary === null
    ? bytes.subarray(bytes.length)
    : bytes.subarray(boundary.index + boundary[0].length);
}

const ENDS: ReadonlySet<string> = new Set([
  "message_stop",
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
]);
/** Quotation marks within a text are escaped, so the words stand for members. */
const GEMINI_END = /(?<!\\)"(?:finish|block)Reason"\s*:/;
const OF_KNOWN_APIS = /^(?:message_|content_block_|response\.)|^ping$/;

/** False only if the last event is one of a known API that another one must follow. */
function isEnded(events: readonly StreamEvent[]): boolean {
  const last = events.at(-1);
  if (last === undefined || last.data === "[DONE]") return true;
  const value = parse(last.data);
  if (value === null) return true;
  const { type, choices, candidates } = value;
  if (typeof type === "string" && OF_KNOWN_APIS.test(type)) return ENDS.has(type);
  if (Array.isArray(candidates) && candidates.length > 0)
    return events.some(({ data }) => GEMINI_END.test(data));
  if (!Array.isArray(choices) || choices.length === 0) return true;
  return events.some(({ data }) => data.includes("finish_reason") && hasFinished(parse(data)));
}

function hasFinished(value: Fields | null): boolean {
  const choices = value?.["choices"];
  return (
    Array.isArray(choices) &&
    choices.some((choice) => (choice as { finish_reason?: unknown } | null)?.finish_reason != null)
  );
}

const ERROR_START = /^\s*\[?\s*\{\s*(?:"error"\s*:\s*["{]|"type"\s*:\s*"error")/;
const CLOSING = /[}\]]\s*$/;

const [OPEN, CLOSE, QUOTE, E, T] = Buffer.from('{}"et');

/** Most answers: an object whose first member is neither `error` nor `type`, with its end. */
function isPlainJson(first: Buffer, last: Buffer): boolean {
  return first[0] === OPEN && first[1] === QUOTE && first[2] !== E && first[2] !== T && last.at(-1) === CLOSE;
}

/** Of JSON the first and the last bytes are enough. */
function jsonFault(status: number, first: Buffer, last: Buffer): AttemptFailure | null {
  if (isPlainJson(first, last)) return null;
  const start = first.toString("latin1", 0, START_BYTES);
  if (start.trim() === "") return inBandFailure(status, "the response is empty");
  if (start.trimStart().startsWith("<")) return inBandFailure(status, "the response is a page");
  if (ERROR_START.test(start)) return inBandFailure(status, "the response is an error");
  const isJsonValue = /^\s*[{[]/.test(start);
  const end = last.toString("latin1", Math.max(0, last.length - START_BYTES));
  if (isJsonValue && !CLOSING.test(end)) return inBandFailure(status, "the JSON has no end");
  return GEMINI_LIST.test(start) ? geminiListFault(status, last) : null;
}

/** What Gemini streams without server-sent events. */
const GEMINI_LIST = /^\s*\[\s*\{\s*"candidates"/;

function geminiListFault(status: number, last: Buffer): AttemptFailure | null {
  const tail = last.toString("latin1", Math.max(0, last.length - SMALL_BYTES));
  if (GEMINI_END.test(tail)) return null;
  return /,\s*\{\s*"error"\s*:/.test(tail)
    ? inBandFailure(status, "the response ends with an error")
    : inBandFailure(status, "the stream ended in the middle of the answer", true);
}

/** Of JSON that is in memory. */
function parsedFault(status: number, body: Buffer): AttemptFailure | null {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    return inBandFailure(status, "the JSON is broken");
  }
  const isGeminiList = GEMINI_LIST.test(body.toString("latin1", 0, START_BYTES));
  const failed = isGeminiList && Array.isArray(value) && value.some((one) => isFields(one) && hasError(one));
  return failed ? inBandFailure(status, "the response contains an error") : null;
}

function parse(data: string): Fields | null {
  try {
    const value: unknown = JSON.parse(data);
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * The binary event stream of Amazon Bedrock (`application/vnd.amazon.eventstream`) as the server-sent events that it contains. Each message
 * has a length, headers, a payload and two checksums; the payload of a chunk is an event of Anthropic's stream in base64.
 *
 * Invariant: the events do not depend on where the bytes are split, and a message with a wrong length or checksum fails the exchange.
 */
import { crc32 } from "node:zlib";
import {
  type ResponseHead,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
} from "../../engines/relay/index.ts";

const PRELUDE_BYTES = 12;
const CRC_BYTES = 4;
/** AWS's own limit of a message is 24 MiB. */
const MAX_MESSAGE_BYTES = 24 * 1024 * 1024;
const STRING = 7;
/** Bytes of the value, by type of header; -1: a length of two bytes precedes it. */
const VALUE_BYTES: readonly number[] = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16];
const EVENT_STREAM = "text/event-stream; charset=utf-8";

/** Exceptions in a stream → types of Anthropic's errors. */
const ERROR_TYPES: Readonly<Record<string, string>> = {
  throttlingException: "rate_limit_error",
  validationException: "invalid_request_error",
  serviceUnavailableException: "overloaded_error",
  modelTimeoutException: "timeout_error",
};

interface Message {
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Buffer;
}

/** Passes a binary event stream on as server-sent events, and every other response unchanged. */
export function readAwsEventStream(
  send: (handler: UpstreamHandler) => UpstreamExchange,
  handler: UpstreamHandler,
): UpstreamExchange {
  let decoder: AwsEventDecoder | null = null;
  let isFailed = false;
  const exchange = send({
    onHead(head) {
      if (head.status < 400 && head.contentType.startsWith("application/vnd.amazon.eventstream")) {
        decoder = new AwsEventDecoder();
      }
      handler.onHead(decoder === null ? head : asEventStream(head));
    },
    onBody(chunk, isLast) {
      if (isFailed) return;
      if (decoder === null) {
        handler.onBody(chunk, isLast);
        return;
      }
      try {
        const text = decoder.push(chunk);
        if (isLast && !decoder.isBetweenMessages) throw new Error("the event stream ends inside a message");
        if (text !== "" || isLast) handler.onBody(Buffer.from(text), isLast);
      } catch (cause) {
        isFailed = true;
        if (!isLast) exchange.abort();
        handler.onFailure(new UpstreamFailure("broken", "the provider sent a malformed event stream", cause));
      }
    },
    onReadEnd: () => handler.onReadEnd(),
    onFailure: (failure) => handler.onFailure(failure),
  });
  return exchange;
}

function asEventStream(head: ResponseHead): ResponseHead {
  const rawHeaders = ["content-type", EVENT_STREAM];
  for (let i = 0; i + 1 < head.rawHeaders.length; i += 2) {
    const name = head.rawHeaders[i] ?? "";
    if (!/^content-(?:type|length)$/i.test(name)) rawHeaders.push(name, head.rawHeaders[i + 1] ?? "");
  }
  return { ...head, rawHeaders, contentType: EVENT_STREAM };
}

export class AwsEventDecoder {
  #rest: Buffer = Buffer.from("");

  get isBetweenMessages(): boolean {
    return this.#rest.length === 0;
  }

  /** The events of the messages that are complete, as text. Throws for bytes that are no messages. */
  push(chunk: Buffer): string {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let text = "";
    while (this.#rest.length >= PRELUDE_BYTES) {
      const length = this.#rest.readUInt32BE(0);
      if (length < PRELUDE_BYTES + CRC_BYTES || length > MAX_MESSAGE_BYTES) throw new Error("wrong length");
      if (crc32(this.#rest.subarray(0, 8)) !== this.#rest.readUInt32BE(8)) throw new Error("wrong checksum");
      if (this.#rest.length < length) break;
      text += toEvent(readMessage(this.#rest.subarray(0, length)));
      this.#rest = this.#rest.subarray(length);
    }
    return text;
  }
}

function readMessage(bytes: Buffer): Message {
  const end = bytes.length - CRC_BYTES;
  if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw new Error("wrong checksum");
  const headersEnd = PRELUDE_BYTES + bytes.readUInt32BE(4);
  if (headersEnd > end) throw new Error("wrong length");
  const headers = new Map<string, string>();
  for (let at = PRELUDE_BYTES; at < headersEnd;) {
    const nameEnd = at + 1 + bytes.readUInt8(at);
    const name = bytes.toString("utf8", at + 1, nameEnd);
    const type = bytes.readUInt8(nameEnd);
    const fixed = VALUE_BYTES[type];
    if (fixed === undefined) throw new Error("unknown type of header");
    const start = nameEnd + (fixed === -1 ? 3 : 1);
    at = start + (fixed === -1 ? bytes.readUInt16BE(nameEnd + 1) : fixed);
    if (at > headersEnd) throw new Error("wrong length");
    if (type === STRING) headers.set(name, bytes.toString("utf8", start, at));
  }
  return { headers, payload: bytes.subarray(headersEnd, end) };
}

function toEvent({ headers, payload }: Message): string {
  const value = JSON.parse(payload.toString("utf8") || "{}") as { bytes?: unknown; message?: unknown };
  const kind = headers.get(":exception-type") ?? headers.get(":error-code");
  if (kind !== undefined) {
    const message = typeof value.message === "string" ? value.message : kind;
    const error = { type: ERROR_TYPES[kind] ?? "api_error", message };
    return `event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`;
  }
  if (typeof value.bytes !== "string") return "";
  const event = JSON.parse(Buffer.from(value.bytes, "base64").toString("utf8")) as { type?: unknown };
  const name = typeof event.type === "string" ? `event: ${event.type}\n` : "";
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

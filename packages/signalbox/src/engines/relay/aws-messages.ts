/**
 * Splits the binary event stream of Amazon (`application/vnd.amazon.eventstream`) into messages. Each has a length, headers, a payload and two
 * checksums.
 *
 * Invariant: the messages do not depend on where the bytes are split. Bytes that are no message, and a message with a wrong checksum, throw.
 */
import { crc32 } from "node:zlib";

export interface AwsMessage {
  /** Headers whose values are text. */
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Buffer;
}

const PRELUDE_BYTES = 12;
const CRC_BYTES = 4;
/** AWS's own limit of a message is 24 MiB. */
const MAX_MESSAGE_BYTES = 24 * 1024 * 1024;
const STRING = 7;
/** Bytes of the value, by type of header; -1: a length of two bytes precedes it. */
const VALUE_BYTES: readonly number[] = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16];

export class AwsMessageReader {
  readonly #maxBytes: number;
  /** What arrived of the next message, its length in bytes, and how long the message is; 0 while that is not known. */
  #pieces: Buffer[] = [];
  #size = 0;
  #needed = 0;

  /** A longer message throws. */
  constructor(maxBytes = MAX_MESSAGE_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get isBetweenMessages(): boolean {
    return this.#size === 0;
  }

  /** The messages that are complete now. */
  push(chunk: Buffer): AwsMessage[] {
    this.#pieces.push(chunk);
    this.#size += chunk.length;
    // A long message is put together once, not with each read.
    if (this.#size < this.#needed) return [];
    let rest = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces);
    const messages: AwsMessage[] = [];
    while (rest.length >= PRELUDE_BYTES) {
      const length = rest.readUInt32BE(0);
      if (length < PRELUDE_BYTES + CRC_BYTES || length > this.#maxBytes) throw new Error("wrong length");
      if (crc32(rest.subarray(0, 8)) !== rest.readUInt32BE(8)) throw new Error("wrong checksum");
      if (rest.length < length) break;
      messages.push(readMessage(rest.subarray(0, length)));
      rest = rest.subarray(length);
    }
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#size = rest.length;
    this.#needed = rest.length < PRELUDE_BYTES ? 0 : rest.readUInt32BE(0);
    return messages;
  }
}

function readMessage(bytes: Buffer): AwsMessage {
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

/** The bytes of the messages at the beginning of `bytes`, and the rest. Throws for a length that no message has; checksums are left to the reader. */
export function splitAwsMessages(bytes: Buffer): {
  readonly messages: readonly Buffer[];
  readonly rest: Buffer;
} {
  const messages: Buffer[] = [];
  let rest = bytes;
  while (rest.length >= PRELUDE_BYTES) {
    const length = rest.readUInt32BE(0);
    if (length < PRELUDE_BYTES + CRC_BYTES || length > MAX_MESSAGE_BYTES) throw new Error("wrong length");
    if (rest.length < length) break;
    messages.push(rest.subarray(0, length));
    rest = rest.subarray(length);
  }
  return { messages, rest };
}

/** The message with what `edit` makes of its payload; the same one for null. */
export function editAwsMessage(bytes: Buffer, edit: (payload: Buffer) => string | null): Buffer {
  const headersEnd = PRELUDE_BYTES + bytes.readUInt32BE(4);
  const payload = edit(bytes.subarray(headersEnd, Math.max(headersEnd, bytes.length - CRC_BYTES)));
  return payload === null ? bytes : frame(bytes.subarray(PRELUDE_BYTES, headersEnd), Buffer.from(payload));
}

/** A message whose headers are text. */
export function writeAwsMessage(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const parts = Object.entries(headers).flatMap(([name, value]) => {
    const text = Buffer.from(value);
    return [
      Buffer.from([name.length]),
      Buffer.from(name),
      Buffer.from([STRING, text.length >> 8, text.length & 255]),
      text,
    ];
  });
  return frame(Buffer.concat(parts), Buffer.from(payload));
}

function frame(headers: Buffer, payload: Buffer): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(PRELUDE_BYTES), headers, payload, Buffer.alloc(CRC_BYTES)]);
  bytes.writeUInt32BE(bytes.length, 0);
  bytes.writeUInt32BE(headers.length, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, bytes.length - CRC_BYTES)), bytes.length - CRC_BYTES);
  return bytes;
}

/** The JSON inside a message: `invoke-with-response-stream` wraps the model's own event in base64, `converse-stream` does not. */
export function readAwsPayload({ payload }: AwsMessage): Readonly<Record<string, unknown>> {
  const value = JSON.parse(payload.toString("utf8") || "{}") as Record<string, unknown>;
  const { bytes } = value;
  if (typeof bytes !== "string") return value;
  return JSON.parse(Buffer.from(bytes, "base64").toString("utf8")) as Record<string, unknown>;
}

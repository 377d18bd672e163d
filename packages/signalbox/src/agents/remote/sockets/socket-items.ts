/**
 * The items that two nodes exchange about the WebSockets of one instance, as bytes. The edge is the node where the sockets end, the owner the node
 * that runs the instance. A connection has a number, which the edge chose; a message or close has a ticket, which the answer repeats.
 *
 *   item     = length (u32, of the rest) kind (u8) payload
 *
 * Numbers are little-endian. An item that does not have this form is a defect of the other node (`ItemError`).
 */
import { deserialize, serialize } from "node:v8";
import { encodeFloat64, encodeItemHeader, encodeUint32s } from "../../../engines/node-link/index.ts";

export const ITEM_KINDS = {
  /** Both: the number of counted items that have arrived. Not counted itself. */
  ack: 0,
  /** Owner: the stream continues a session, or begins one. Not counted. */
  welcome: 1,
  /** Edge. */
  open: 2,
  message: 3,
  credentialEnded: 4,
  closed: 5,
  /** Owner: one frame for one or many connections. */
  frame: 6,
  close: 7,
  facts: 8,
  ended: 9,
  notRun: 10,
  moved: 11,
} as const;

/** The largest message of an agent that passes between nodes, with its receivers. */
export const MAX_ITEM_BYTES = 128 * 1024 * 1024;
const HEADER_BYTES = 5;

export class ItemError extends Error {
  override readonly name = "ItemError";
}

export interface Item {
  readonly kind: number;
  readonly payload: Buffer;
}

/** One item as pieces: the last piece of a frame is the frame itself, which many items may share. */
export function encodeItem(kind: number, ...pieces: readonly Uint8Array[]): Buffer[] {
  let length = 1;
  for (const piece of pieces) length += piece.length;
  const item = [encodeItemHeader(length, kind)];
  for (const piece of pieces) item.push(toBuffer(piece));
  return item;
}

/** Puts items together from the chunks of a stream. */
export class ItemReader {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** The bytes that the next item needs. */
  #needed = HEADER_BYTES;

  /** Throws `ItemError`. */
  *push(chunk: Buffer): Generator<Item> {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= this.#needed) {
      const all = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
      if (all === undefined) return;
      const length = all.readUInt32LE();
      if (length === 0 || length > MAX_ITEM_BYTES) throw new ItemError(`an item of ${length} bytes`);
      const end = 4 + length;
      if (all.length < end) {
        this.#chunks = [all];
        this.#needed = end;
        return;
      }
      const rest = all.subarray(end);
      this.#chunks = rest.length === 0 ? [] : [rest];
      this.#bytes = rest.length;
      this.#needed = HEADER_BYTES;
      yield { kind: all[4] ?? 0, payload: all.subarray(HEADER_BYTES, end) };
    }
  }
}

export function encodeNumbers(...numbers: readonly number[]): Buffer {
  return encodeUint32s(numbers);
}

/** The unsigned 32-bit number at an offset. */
export function readNumber(payload: Buffer, offset: number): number {
  if (payload.length < offset + 4) throw new ItemError("an item is too short");
  return payload.readUInt32LE(offset);
}

/** Up to 2^53: a session may exchange more than 2^32 items. */
export function encodeCount(count: number): Buffer {
  return encodeFloat64(count);
}

export function decodeCount(payload: Buffer): number {
  const count = payload.length === 8 ? payload.readDoubleLE() : Number.NaN;
  if (!Number.isSafeInteger(count) || count < 0) throw new ItemError("an item has no valid count");
  return count;
}

export interface FrameItem {
  readonly to: readonly number[];
  readonly frame: Buffer;
}

/** The receivers in front of a frame. */
export function encodeReceivers(to: readonly number[]): Buffer {
  return encodeUint32s([to.length, ...to]);
}

export function decodeFrame(payload: Buffer): FrameItem {
  const count = readNumber(payload, 0);
  const start = 4 + count * 4;
  if (payload.length < start) throw new ItemError("a frame has too few receivers");
  const to: number[] = [];
  for (let offset = 4; offset < start; offset += 4) to.push(payload.readUInt32LE(offset));
  return { to, frame: payload.subarray(start) };
}

export interface CloseItem {
  readonly number: number;
  readonly ticket: number;
  readonly code: number;
  readonly reason: string;
}

/** The ticket is 0 if no answer is expected. */
export function encodeClose({ number, ticket, code, reason }: CloseItem): Buffer {
  return Buffer.concat([encodeNumbers(number, ticket, code), Buffer.from(reason, "utf8")]);
}

export function decodeClose(payload: Buffer): CloseItem {
  return {
    number: readNumber(payload, 0),
    ticket: readNumber(payload, 4),
    code: readNumber(payload, 8),
    reason: payload.toString("utf8", 12),
  };
}

export interface MessageItem {
  readonly number: number;
  readonly ticket: number;
  readonly message: string | Buffer;
}

export function encodeMessage({ number, ticket, message }: MessageItem): [Buffer, Buffer] {
  const isText = typeof message === "string";
  return [encodeNumbers(number, ticket, isText ? 1 : 0), isText ? Buffer.from(message, "utf8") : message];
}

export function decodeMessage(payload: Buffer): MessageItem {
  const isText = readNumber(payload, 8) === 1;
  const bytes = payload.subarray(12);
  return {
    number: readNumber(payload, 0),
    ticket: readNumber(payload, 4),
    message: isText ? bytes.toString("utf8") : bytes,
  };
}

/** A value that `structuredClone` accepts. Throws for another one. */
export function encodeValue(value: unknown): Buffer {
  return serialize(value);
}

export function decodeValue(payload: Buffer): unknown {
  try {
    return deserialize(payload) as unknown;
  } catch (error) {
    throw new ItemError("an item has no valid value", { cause: error });
  }
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

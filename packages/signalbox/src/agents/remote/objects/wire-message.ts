/**
 * The messages of a session between two nodes, on the bytes of a stream: length, kind, id, payload. The stream may cut them anywhere.
 */

export const MESSAGES = {
  /** id: of the call; payload: reference, path, arguments. */
  call: 1,
  /** id: of the call; payload: the value. */
  result: 2,
  /** id: of the call; payload: what was thrown. */
  thrown: 3,
  /** id: of the call; payload: the bytes that the call resolved to, as they are. */
  bytes: 4,
  /** id: a reference of the receiver that the sender needs no more; payload: see `RELEASE`. */
  release: 5,
  /** id: an `AbortSignal` of the sender; payload: the reason. */
  abort: 6,
  /** id: a WebSocket; payload: UTF-8. */
  text: 7,
  /** id: a WebSocket; payload: bytes. */
  binary: 8,
  /** id: a WebSocket; payload: code, cleanness, reason. */
  close: 9,
  /** id: a WebSocket; payload: the number of the frame that was handled, and how (`OUTCOMES`). */
  handled: 10,
  /** id: a WebSocket; payload: where it belongs from now on, and what belongs to it. */
  moved: 11,
} as const;

export type MessageKind = (typeof MESSAGES)[keyof typeof MESSAGES];

/** Why a reference is released: the program disposed it, or no code refers to it any more. */
export const RELEASE = { disposed: Buffer.of(0), collected: Buffer.of(1) } as const;

const HEAD_BYTES = 9;
/** As in the originals: the limit of the arguments or the result of one call. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** A message of a WebSocket may be longer than a call. */
const MAX_READ_BYTES = 2 ** 30;

export function writeMessage(kind: MessageKind, id: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + payload.length);
  const head = new DataView(bytes.buffer);
  head.setUint32(0, payload.length, true);
  head.setUint8(4, kind);
  head.setUint32(5, id, true);
  bytes.set(payload, HEAD_BYTES);
  return bytes;
}

export type MessageReceiver = (kind: number, id: number, payload: Buffer) => void;

/** Puts messages together again. Throws for a message that is too long: the other node has a defect. */
export class MessageReader {
  #parts: Buffer[] = [];
  #bytes = 0;

  read(chunk: Buffer, receive: MessageReceiver): void {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= HEAD_BYTES) {
      const head = this.#joined(HEAD_BYTES);
      const length = head.readUInt32LE(0);
      if (length > MAX_READ_BYTES) throw new RangeError(`a message of ${length} bytes`);
      if (this.#bytes < HEAD_BYTES + length) return;
      const all = this.#joined(HEAD_BYTES + length);
      const rest = all.subarray(HEAD_BYTES + length);
      this.#parts = rest.length === 0 ? [] : [rest];
      this.#bytes = rest.length;
      receive(all.readUInt8(4), all.readUInt32LE(5), all.subarray(HEAD_BYTES, HEAD_BYTES + length));
    }
  }

  /** The first part, which has at least `length` bytes afterwards. */
  #joined(length: number): Buffer {
    const [first] = this.#parts;
    if (first !== undefined && first.length >= length) return first;
    const all = Buffer.concat(this.#parts);
    this.#parts = [all];
    return all;
  }
}

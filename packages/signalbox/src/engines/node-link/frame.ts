/**
 * The frames of a link: 4 bytes length of the payload, 1 byte kind, 4 bytes stream id, payload; integers are little-endian.
 *
 * `FrameReader` accepts any split of the bytes. `FrameWriter` collects the frames of one turn of the event loop and writes them together: a
 * system call costs more than a frame.
 */

export const FRAME_KINDS = {
  /** A request with one response: the name of the method, its length in the first byte, then the payload. */
  call: 1,
  answer: 2,
  /** Failure of a call: JSON. */
  failure: 3,
  /** Opens a stream: name as in `call`, then the payload. */
  open: 4,
  data: 5,
  /** Bytes that the receiver has consumed: 4 bytes. */
  window: 6,
  /** No more data from this side. */
  end: 7,
  /** The stream ends at once in both directions: JSON, or empty for a cancellation. */
  reset: 8,
  ping: 9,
  pong: 10,
  /** The first frames of a connection. */
  hello: 11,
  proof: 12,
  /** The side closes the connection because of an error of the other side: text. */
  refusal: 13,
  /** The side stops: the other side begins nothing more on this link. */
  leave: 14,
  /** Everything that the side had begun before it received `leave` has ended. */
  left: 15,
} as const;

export type FrameKind = (typeof FRAME_KINDS)[keyof typeof FRAME_KINDS];

export interface Frame {
  readonly kind: number;
  readonly stream: number;
  /** A view of the received bytes. It stays valid, and keeps the whole read in memory. */
  readonly payload: Buffer;
}

export const HEADER_BYTES = 9;
/** Payloads up to this size are copied next to their header; a larger one is written as it is. */
const COPIED_BYTES = 16 * 1024;

export class FrameError extends Error {
  override readonly name = "FrameError";
}

/** The first frame of the bytes and what follows it; null while it is incomplete. Throws `FrameError` if it is longer than the limit. */
export function takeFrame(
  bytes: Buffer,
  maxBytes: number,
): { readonly frame: Frame; readonly rest: Buffer } | null {
  if (bytes.length < HEADER_BYTES) return null;
  const length = checkedLength(bytes.readUInt32LE(0), maxBytes);
  const end = HEADER_BYTES + length;
  if (end > bytes.length) return null;
  return {
    frame: { kind: bytes[4] ?? 0, stream: bytes.readUInt32LE(5), payload: bytes.subarray(HEADER_BYTES, end) },
    rest: bytes.subarray(end),
  };
}

function checkedLength(length: number, maxBytes: number): number {
  if (length > maxBytes) throw new FrameError(`a frame of ${length} bytes exceeds the limit`);
  return length;
}

export class FrameReader {
  readonly #maxBytes: number;
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Calls `onFrame` for every complete frame. Throws `FrameError` if a frame is longer than the limit. */
  read(chunk: Buffer, onFrame: (frame: Frame) => void): void {
    let bytes = chunk;
    if (this.#heldBytes > 0) {
      this.#held.push(chunk);
      this.#heldBytes += chunk.length;
      // Joined only when the frame is complete: a large frame arrives in many chunks.
      const length = this.#lengthOfHeld();
      if (length === null || this.#heldBytes < HEADER_BYTES + length) return;
      bytes = Buffer.concat(this.#held, this.#heldBytes);
      this.#held = [];
      this.#heldBytes = 0;
    }
    let offset = 0;
    while (bytes.length - offset >= HEADER_BYTES) {
      const length = this.#checked(bytes.readUInt32LE(offset));
      const end = offset + HEADER_BYTES + length;
      if (end > bytes.length) break;
      onFrame({
        kind: bytes[offset + 4] ?? 0,
        stream: bytes.readUInt32LE(offset + 5),
        payload: bytes.subarray(offset + HEADER_BYTES, end),
      });
      offset = end;
    }
    if (offset === bytes.length) return;
    this.#held = [bytes.subarray(offset)];
    this.#heldBytes = bytes.length - offset;
  }

  /** Length of the payload of the held frame; null while its header is incomplete. */
  #lengthOfHeld(): number | null {
    let [first] = this.#held;
    if (first === undefined || this.#heldBytes < HEADER_BYTES) return null;
    if (first.length < HEADER_BYTES) {
      first = Buffer.concat(this.#held, this.#heldBytes);
      this.#held = [first];
    }
    return this.#checked(first.readUInt32LE(0));
  }

  #checked(length: number): number {
    return checkedLength(length, this.#maxBytes);
  }
}

export interface FrameTarget {
  cork(): void;
  uncork(): void;
  write(bytes: Buffer): boolean;
}

export class FrameWriter {
  readonly #target: FrameTarget;
  #parts: Buffer[] = [];
  #isScheduled = false;
  #isClosed = false;
  #queuedBytes = 0;

  constructor(target: FrameTarget) {
    this.#target = target;
  }

  /** Bytes that wait for the end of this turn of the event loop. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** `prefix` and `payload` form the payload of the frame. A payload that is longer than 16 KiB must not change afterwards. */
  write(kind: FrameKind, stream: number, payload: Uint8Array, prefix: Buffer | null = null): void {
    if (this.#isClosed) return;
    const prefixBytes = prefix === null ? 0 : prefix.length;
    const isCopied = payload.length <= COPIED_BYTES;
    const head = Buffer.allocUnsafe(HEADER_BYTES + prefixBytes + (isCopied ? payload.length : 0));
    head.writeUInt32LE(prefixBytes + payload.length, 0);
    head[4] = kind;
    head.writeUInt32LE(stream, 5);
    if (prefix !== null) head.set(prefix, HEADER_BYTES);
    if (isCopied) head.set(payload, HEADER_BYTES + prefixBytes);
    this.#parts.push(head);
    if (!isCopied) this.#parts.push(Buffer.from(payload.buffer, payload.byteOffset, payload.length));
    this.#queuedBytes += HEADER_BYTES + prefixBytes + payload.length;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.flush());
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#isClosed || this.#parts.length === 0) return;
    const parts = this.#parts;
    this.#parts = [];
    this.#queuedBytes = 0;
    if (parts.length === 1 && parts[0] !== undefined) {
      this.#target.write(parts[0]);
      return;
    }
    this.#target.cork();
    for (const part of joinSmall(parts)) this.#target.write(part);
    this.#target.uncork();
  }

  /** Frames that were not flushed are dropped. */
  close(): void {
    this.#isClosed = true;
    this.#parts = [];
    this.#queuedBytes = 0;
  }
}

/** Joins neighbours up to 64 KiB: a vector of many small buffers costs more than the copy. */
function* joinSmall(parts: readonly Buffer[]): Generator<Buffer> {
  let group: Buffer[] = [];
  let bytes = 0;
  for (const part of parts) {
    if (bytes > 0 && bytes + part.length > 64 * 1024) {
      yield Buffer.concat(group, bytes);
      group = [];
      bytes = 0;
    }
    if (part.length > COPIED_BYTES + HEADER_BYTES + 256) {
      if (bytes > 0) yield Buffer.concat(group, bytes);
      group = [];
      bytes = 0;
      yield part;
      continue;
    }
    group.push(part);
    bytes += part.length;
  }
  if (bytes > 0) yield Buffer.concat(group, bytes);
}

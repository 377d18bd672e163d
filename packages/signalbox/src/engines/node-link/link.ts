/**
 * A connection to another node after its handshake: calls with one answer, and streams.
 *
 * Invariants:
 * 1. Each call and each stream ends exactly once: with an answer, a failure, or `broken` when the link ends.
 * 2. Calls without an answer hold at most `MAX_UNANSWERED_BYTES` of payload; further calls fail with `overloaded` and are not sent.
 * 3. A side that receives nothing for `SILENCE_MS` closes the link. Both sides send a ping each second when they have nothing else to send. A link to a process of this machine
 *    (`isWatched` false) stays: the socket closes with the process.
 * 4. A node that `leave`s loses no answer: its peer begins nothing more on the link, and says so when everything that it had begun has ended.
 * 5. A frame that the protocol does not allow closes the link: the other node has a defect, and its next bytes cannot be trusted.
 *
 * Streams opened by the dialler have odd ids, those of the listener even ones; calls use the same numbers.
 */
import { FRAME_KINDS, FrameError, FrameReader, FrameWriter, type Frame } from "./frame.ts";
import { decodeFailure, encodeFailure, LinkError, type LinkFailure } from "./link-failure.ts";
import { LinkStream, WINDOW_BYTES } from "./link-stream.ts";
import type { LinkSocket } from "./link-socket.ts";

/** The limit of one call or answer. Larger contents use a stream. */
export const MAX_CALL_BYTES = 32 * 1024 * 1024;
const MAX_UNANSWERED_BYTES = 128 * 1024 * 1024;
const PING_MS = 1000;
const SILENCE_MS = 5000;

/** What a node offers to others. */
export interface LinkHandler {
  /** A thrown `LinkError` is sent as it is, any other error as `internal`. */
  onCall(name: string, payload: Buffer, from: Link): Uint8Array | Promise<Uint8Array>;
  onStream(name: string, payload: Buffer, stream: LinkStream, from: Link): void;
}

export interface LinkPeer {
  readonly node: string;
  readonly version: number;
}

interface PendingCall {
  readonly bytes: number;
  readonly resolve: (answer: Buffer) => void;
  readonly reject: (error: LinkError) => void;
  /** Removes the listener of the caller's signal. */
  readonly release: () => void;
}

const NOTHING = new Uint8Array(0);

export class Link {
  readonly peer: LinkPeer;
  readonly #socket: LinkSocket;
  readonly #handler: LinkHandler | null;
  readonly #onClose: (link: Link, failure: LinkFailure) => void;
  readonly #writer: FrameWriter;
  readonly #reader = new FrameReader(MAX_CALL_BYTES + 256);
  readonly #calls = new Map<number, PendingCall>();
  readonly #streams = new Map<number, LinkStream>();
  readonly #names = new Map<string, Buffer>();
  readonly #timer: NodeJS.Timeout | undefined;
  #nextId: number;
  #unansweredBytes = 0;
  #isClosed = false;
  readonly #left = Promise.withResolvers<void>();
  #isPeerLeaving = false;
  /** Bytes that had been read when the link was paused; null unless it is. */
  #unread: Buffer[] | null = null;
  #hasSent = false;
  #silentTicks = 0;

  /** `onClose` is called once. Without a handler the other side may only respond. */
  constructor(
    socket: LinkSocket,
    peer: LinkPeer,
    side: "dialler" | "listener",
    handler: LinkHandler | null,
    onClose: (link: Link, failure: LinkFailure) => void,
    isWatched = true,
  ) {
    this.peer = peer;
    this.#socket = socket;
    this.#handler = handler;
    this.#onClose = onClose;
    this.#writer = new FrameWriter(socket);
    this.#nextId = side === "dialler" ? 1 : 2;
    this.#timer = isWatched ? setInterval(() => this.#tick(), PING_MS).unref() : undefined;
  }

  /** Bytes that the kernel has not accepted yet. */
  get queuedBytes(): number {
    return this.#socket.writableLength + this.#writer.queuedBytes;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The other node stops, and takes nothing new. */
  get isPeerLeaving(): boolean {
    return this.#isPeerLeaving;
  }

  /** Throws `LinkError`. An aborted call fails with `broken`: the other node may have done the work. */
  call(name: string, payload: Uint8Array, signal?: AbortSignal): Promise<Buffer> {
    const refusal = this.#refusal(payload.length);
    if (refusal !== null) return Promise.reject(new LinkError(refusal));
    const id = this.#takeId();
    return new Promise<Buffer>((resolve, reject) => {
      const abort = () => {
        if (this.#takeCall(id) !== undefined)
          reject(new LinkError({ code: "broken", message: "the call was aborted" }));
      };
      const release = () => signal?.removeEventListener("abort", abort);
      this.#calls.set(id, { bytes: payload.length, resolve, reject, release });
      this.#unansweredBytes += payload.length;
      this.#write(FRAME_KINDS.call, id, payload, this.#nameBytes(name));
      signal?.addEventListener("abort", abort, { once: true });
      if (signal?.aborted === true) abort();
    });
  }

  /** Opens a stream. The caller calls `start` of the stream with its handler. */
  openStream(name: string, payload: Uint8Array): LinkStream {
    const refusal = this.#refusal(payload.length);
    if (refusal !== null) throw new LinkError(refusal);
    const stream = this.#addStream(this.#takeId());
    this.#write(FRAME_KINDS.open, stream.id, payload, this.#nameBytes(name));
    return stream;
  }

  /**
   * Asks the other node to begin nothing more here. Resolves when everything that it had begun has ended, and it has all answers; or when the link ends.
   */
  leave(): Promise<void> {
    this.#write(FRAME_KINDS.leave, 0, NOTHING);
    return this.#left.promise;
  }

  /** Reads nothing more until `resume`; still sends. The silence of a paused peer is not noticed. */
  pause(): void {
    this.#unread = [];
    this.#socket.pause();
  }

  resume(): void {
    const unread = this.#unread ?? [];
    this.#unread = null;
    for (const chunk of unread) this.receive(chunk);
    this.#socket.resume();
  }

  /** Bytes arrived at the socket. */
  receive(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#silentTicks = 0;
    if (this.#unread !== null) {
      this.#unread.push(chunk);
      return;
    }
    try {
      this.#reader.read(chunk, (frame) => this.#accept(frame));
    } catch (error) {
      if (!(error instanceof FrameError) && !(error instanceof SyntaxError)) throw error;
      this.close({ code: "broken", message: error.message });
    }
  }

  /** Fails what is under way, and destroys the socket. */
  close(failure: LinkFailure): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#writer.close();
    this.#socket.destroy();
    const broken: LinkFailure = { ...failure, code: "broken" };
    for (const id of this.#calls.keys()) this.#takeCall(id)?.reject(new LinkError(broken));
    for (const stream of this.#streams.values()) stream.fail(broken);
    this.#streams.clear();
    this.#left.resolve();
    this.#onClose(this, failure);
  }

  #refusal(bytes: number): LinkFailure | null {
    if (this.#isClosed) return { code: "unreachable", message: "the link to the node is closed" };
    if (this.#isPeerLeaving) return { code: "unreachable", message: "the node stops" };
    if (bytes > MAX_CALL_BYTES) return { code: "too_large", message: `a call of ${bytes} bytes` };
    if (this.#unansweredBytes + bytes > MAX_UNANSWERED_BYTES) {
      return { code: "overloaded", message: "too many requests wait for the node" };
    }
    return null;
  }

  #takeId(): number {
    const id = this.#nextId;
    // The parity stays; a call that is as old as 2^31 others does not exist.
    this.#nextId = id + 2 > 0xffff_fffe ? (id % 2 === 0 ? 2 : 1) : id + 2;
    return id;
  }

  #takeCall(id: number): PendingCall | undefined {
    const call = this.#calls.get(id);
    if (call === undefined) return undefined;
    this.#calls.delete(id);
    this.#unansweredBytes -= call.bytes;
    call.release();
    if (this.#isPeerLeaving) this.#sayLeft();
    return call;
  }

  #nameBytes(name: string): Buffer {
    let bytes = this.#names.get(name);
    if (bytes === undefined) {
      bytes = Buffer.from(`\0${name}`, "latin1");
      bytes[0] = name.length;
      this.#names.set(name, bytes);
    }
    return bytes;
  }

  #write(
    kind: (typeof FRAME_KINDS)[keyof typeof FRAME_KINDS],
    id: number,
    payload: Uint8Array,
    prefix?: Buffer,
  ): void {
    this.#hasSent = true;
    this.#writer.write(kind, id, payload, prefix ?? null);
  }

  #tick(): void {
    if (this.#unread === null) this.#silentTicks += 1;
    if (this.#silentTicks * PING_MS >= SILENCE_MS) {
      this.close({ code: "broken", message: "the node does not respond" });
      return;
    }
    if (!this.#hasSent) this.#writer.write(FRAME_KINDS.ping, 0, NOTHING);
    this.#hasSent = false;
  }

  #addStream(id: number): LinkStream {
    const stream = new LinkStream(id, {
      data: (stream, bytes) => this.#write(FRAME_KINDS.data, stream, bytes),
      window: (stream, bytes) => {
        const payload = Buffer.allocUnsafe(4);
        payload.writeUInt32LE(bytes);
        this.#write(FRAME_KINDS.window, stream, payload);
      },
      end: (stream) => this.#write(FRAME_KINDS.end, stream, NOTHING),
      reset: (stream, failure) =>
        this.#write(FRAME_KINDS.reset, stream, failure === null ? NOTHING : encodeFailure(failure)),
      closed: (stream) => {
        this.#streams.delete(stream);
        if (this.#isPeerLeaving) this.#sayLeft();
      },
    });
    this.#streams.set(id, stream);
    return stream;
  }

  #accept({ kind, stream: id, payload }: Frame): void {
    // Closed by an earlier frame of the same read.
    if (this.#isClosed) return;
    switch (kind) {
      case FRAME_KINDS.call:
        this.#serveCall(id, payload);
        return;
      case FRAME_KINDS.answer:
        this.#takeCall(id)?.resolve(payload);
        return;
      case FRAME_KINDS.failure:
        this.#takeCall(id)?.reject(new LinkError(decodeFailure(payload)));
        return;
      case FRAME_KINDS.open:
        this.#serveStream(id, payload);
        return;
      case FRAME_KINDS.data:
        // Frames of a stream that this side has reset meanwhile are dropped.
        if (this.#streams.get(id)?.receive(payload) === false)
          throw new FrameError("the window was exceeded");
        return;
      case FRAME_KINDS.window:
        if (payload.length !== 4 || payload.readUInt32LE() > WINDOW_BYTES) throw new FrameError("bad window");
        this.#streams.get(id)?.receiveWindow(payload.readUInt32LE());
        return;
      case FRAME_KINDS.end:
        this.#streams.get(id)?.receiveEnd();
        return;
      case FRAME_KINDS.reset:
        this.#streams.get(id)?.fail(decodeFailure(payload));
        return;
      case FRAME_KINDS.ping:
        this.#requireHandler();
        this.#writer.write(FRAME_KINDS.pong, 0, NOTHING);
        return;
      case FRAME_KINDS.pong:
        return;
      case FRAME_KINDS.leave:
        this.#requireHandler();
        this.#isPeerLeaving = true;
        this.#sayLeft();
        return;
      case FRAME_KINDS.left:
        this.#left.resolve();
        return;
      default:
        throw new FrameError(`unknown kind of frame ${kind}`);
    }
  }

  /** Unless something that this side has begun is under way. */
  #sayLeft(): void {
    const isOwn = (id: number) => id % 2 === this.#nextId % 2;
    if (this.#calls.size > 0 || [...this.#streams.keys()].some(isOwn)) return;
    this.#write(FRAME_KINDS.left, 0, NOTHING);
  }

  #requireHandler(): LinkHandler {
    if (this.#handler === null) throw new FrameError("the other side may only respond");
    return this.#handler;
  }

  #serveCall(id: number, payload: Buffer): void {
    const handler = this.#requireHandler();
    const [name, rest] = splitName(payload);
    const answer = (bytes: Uint8Array) => {
      // The other side would close the link, and with it the work of everybody else.
      if (bytes.length > MAX_CALL_BYTES) fail(answerTooLarge(bytes.length));
      else this.#write(FRAME_KINDS.answer, id, bytes);
    };
    const fail = (error: unknown) => this.#write(FRAME_KINDS.failure, id, encodeFailure(toFailure(error)));
    try {
      const answered = handler.onCall(name, rest, this);
      if (answered instanceof Promise) answered.then(answer, fail);
      else answer(answered);
    } catch (error) {
      fail(error);
    }
  }

  #serveStream(id: number, payload: Buffer): void {
    const handler = this.#requireHandler();
    if (this.#streams.has(id)) throw new FrameError("a stream was opened twice");
    const [name, rest] = splitName(payload);
    const stream = this.#addStream(id);
    try {
      handler.onStream(name, rest, stream, this);
    } catch (error) {
      stream.reset(toFailure(error));
    }
  }
}

function splitName(payload: Buffer): [string, Buffer] {
  const length = payload[0] ?? 0;
  if (length === 0 || payload.length < 1 + length) throw new FrameError("a call without a name");
  return [payload.toString("latin1", 1, 1 + length), payload.subarray(1 + length)];
}

function answerTooLarge(bytes: number): LinkError {
  return new LinkError({ code: "answer_too_large", message: `an answer of ${bytes} bytes` });
}

function toFailure(error: unknown): LinkFailure {
  return error instanceof LinkError
    ? error.failure
    : { code: "internal", message: "internal error of the other node" };
}

/**
 * The WebSockets of programs: pairs of ends. What one end sends, the other receives; frames for an end that is not accepted yet are kept.
 *
 *   new → accepted (events) | hibernating (the object is called, and loaded for it) | joined (to a client's socket) → closed
 *
 * Invariants:
 * 1. A frame leaves an end when everything that the sending object wrote before is durable, in order with its other outputs.
 * 2. Frames arrive in the order in which they were sent, the close frame last.
 * 3. A `SocketEnd` belongs to the connection and survives hibernation. A `WorkerWebSocket` is what one object in memory sees of an end: after
 *    that object has left memory, it can send nothing.
 */
import { deserialize } from "node:v8";
import { toBytes } from "./kv-storage.ts";
import { hasFlag } from "./compatibility.ts";
import { currentWork, type ObjectWork } from "./current-work.ts";
import { workerBinding } from "./worker-binding.ts";

export type SocketFrame =
  | { readonly kind: "message"; readonly data: string | ArrayBuffer }
  | { readonly kind: "close"; readonly code: number; readonly reason: string; readonly wasClean: boolean };

/** What became of a frame: its event has ended, or its object has moved to another node before it could run. */
export type FrameOutcome = "handled" | "not run";

/** Takes the frames of an end; the promise, if any, resolves when the frame has been handled. It never rejects. */
export type FrameReceiver = (frame: SocketFrame) => Promise<FrameOutcome | void> | undefined;

/** The size limit of an attachment. */
const MAX_ATTACHMENT_BYTES = 16_384;
/** The reason fits into a control frame beside the code (RFC 6455, section 5.5). */
const MAX_REASON_BYTES = 123;

export class SocketEnd {
  /** The other end of the pair. */
  peer!: SocketEnd;
  tags: readonly string[] = [];
  /** The serialized attachment. */
  attachment: Uint8Array | null = null;
  /** When the last automatic response was sent. */
  autoResponseAt: Date | null = null;
  /** The program has closed it; the frame may still wait for the output gate. */
  isClosing = false;
  hasSentClose = false;
  hasReceivedClose = false;
  /** Tells the client's node, if it is another one, that the object moves; null: the client is here. Resolves when the socket has followed. */
  relocate: ((move: Uint8Array) => Promise<void>) | null = null;
  /** Set while the socket follows its object: resolves when it has arrived. */
  moving: Promise<void> | null = null;
  /** Takes a frame back that the object could not run, because it has moved. */
  onReturn: ((frame: SocketFrame) => void) | null = null;
  #early: SocketFrame[] | null = [];
  #receiver: FrameReceiver | null = null;

  get isConnected(): boolean {
    return this.#receiver !== null;
  }

  get isClosed(): boolean {
    return this.hasSentClose && this.hasReceivedClose;
  }

  /** From now on the receiver takes the frames, beginning with those that have arrived. */
  connect(receiver: FrameReceiver): void {
    this.#receiver = receiver;
    const early = this.#early ?? [];
    this.#early = null;
    for (const frame of early) void receiver(frame);
  }

  /** Delivers a frame to the other end. */
  transmit(frame: SocketFrame): Promise<FrameOutcome | void> | undefined {
    if (this.hasSentClose) return undefined;
    if (frame.kind === "close") this.hasSentClose = true;
    return this.peer.#receive(frame);
  }

  #receive(frame: SocketFrame): Promise<FrameOutcome | void> | undefined {
    if (this.hasReceivedClose) return undefined;
    if (frame.kind === "close") this.hasReceivedClose = true;
    let handled: Promise<FrameOutcome | void> | undefined;
    if (this.#receiver === null) this.#early?.push(frame);
    else handled = this.#receiver(frame);
    // The answer to a close frame (RFC 6455, section 5.5.1), unless the handler of the event has answered.
    if (frame.kind === "close" && !this.hasSentClose) {
      const answer = (outcome?: unknown) => {
        // The new owner of an object that has moved answers.
        if (outcome !== "not run") void this.transmit(frame);
      };
      if (handled === undefined) answer();
      else handled.then(answer, answer);
    }
    return handled;
  }
}

const ENDS = new WeakMap<object, SocketEnd>();

/** The end of a WebSocket of a program. */
export function endOf(webSocket: object): SocketEnd {
  const end = ENDS.get(webSocket);
  if (end === undefined) throw new TypeError("this is not a WebSocket of a WebSocketPair");
  return end;
}

export class WorkerWebSocket extends EventTarget {
  static readonly READY_STATE_CONNECTING = 0;
  static readonly READY_STATE_OPEN = 1;
  static readonly READY_STATE_CLOSING = 2;
  static readonly READY_STATE_CLOSED = 3;
  static readonly CONNECTING = 0;
  static readonly OPEN = 1;
  static readonly CLOSING = 2;
  static readonly CLOSED = 3;

  readonly #end: SocketEnd;
  /** The object that accepted the end for hibernation; else outputs pass the gate of whatever object's code runs. */
  #owner: ObjectWork | null;
  readonly #wrapped = new WeakMap<object, (event: Event) => void>();
  /** What a listener of the current event threw. */
  #thrown: { readonly error: unknown } | null = null;
  readonly url: string | null = null;
  readonly protocol: string = "";
  readonly extensions: string = "";
  /** `blob` or `arraybuffer`: what the data of a binary message is. */
  binaryType = hasFlag("websocket_standard_binary_type") ? "blob" : "arraybuffer";
  onmessage: ((event: Event) => unknown) | null = null;
  onclose: ((event: Event) => unknown) | null = null;
  onerror: ((event: Event) => unknown) | null = null;
  onopen: ((event: Event) => unknown) | null = null;

  constructor(end: SocketEnd, owner: ObjectWork | null) {
    super();
    this.#end = end;
    this.#owner = owner;
    ENDS.set(this, end);
  }

  get readyState(): number {
    if (this.#end.isClosed) return WorkerWebSocket.CLOSED;
    return this.#end.isClosing || this.#end.hasSentClose || this.#end.hasReceivedClose
      ? WorkerWebSocket.CLOSING
      : WorkerWebSocket.OPEN;
  }

  /** The object has accepted the end for hibernation. */
  belongsTo(owner: ObjectWork): void {
    this.#owner = owner;
  }

  /** Begins to deliver frames as events. The object whose code runs stays in memory while the WebSocket is open. */
  accept(): void {
    if (this.#owner !== null) throw new TypeError("Can't accept() WebSocket after enabling hibernation.");
    if (this.#end.isConnected) return;
    const work = currentWork();
    if (work === undefined) {
      this.#end.connect((frame) => this.#dispatchLater(frame));
      return;
    }
    const release = work.hold();
    addAccepted(work, this.#end);
    this.#end.connect((frame) => {
      if (frame.kind === "close") release();
      // A listener that failed has been reported with its turn.
      return work.enter(`websocket ${frame.kind}`, () => this.#dispatch(frame)).catch(() => undefined);
    });
  }

  /**
   * For code outside of objects. Each frame is a task of its own: programs add their listeners after `accept()`, and wait for one message after the other with
   * `once`, whose listener is gone until their microtasks have run. The tasks of one iteration of the event loop run in order, with microtasks in between.
   */
  #dispatchLater(frame: SocketFrame): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(() => {
        try {
          this.#dispatch(frame);
        } catch (error) {
          // The worker logs it.
          workerBinding().waitUntil(Promise.reject(error));
        }
        resolve();
      });
    });
  }

  /** A value that is neither text nor bytes is sent as text. */
  send(message: unknown): void {
    this.#requireAccepted();
    if (this.#end.isClosing || this.#end.hasSentClose) {
      if (this.#end.hasReceivedClose) return;
      throw new TypeError("Can't call WebSocket send() after close().");
    }
    const data = typeof message === "string" ? message : toData(message);
    this.#output({ kind: "message", data });
  }

  close(code?: number, reason?: string): void {
    this.#requireAccepted();
    checkClose(code, reason);
    this.#end.isClosing = true;
    this.#output({ kind: "close", code: code ?? 1005, reason: reason ?? "", wasClean: true });
  }

  /** Keeps a value with the connection, also while the object is not in memory. */
  serializeAttachment(value: unknown): void {
    const bytes = toBytes(value);
    if (bytes.length > MAX_ATTACHMENT_BYTES) {
      throw new Error(
        `A WebSocket 'attachment' cannot be larger than ${MAX_ATTACHMENT_BYTES} bytes. 'attachment' was ${bytes.length} bytes.`,
      );
    }
    this.#end.attachment = bytes;
  }

  deserializeAttachment(): unknown {
    return this.#end.attachment === null ? null : deserialize(this.#end.attachment);
  }

  #requireAccepted(): void {
    if (!this.#end.isConnected && this.#owner === null)
      throw new TypeError(
        "You must call one of accept() or state.acceptWebSocket() on this WebSocket before sending messages.",
      );
  }

  #output(frame: SocketFrame): void {
    const release = () => void this.#end.transmit(frame);
    const work = currentWork() ?? this.#owner;
    if (work === null) release();
    else work.output(release);
  }

  /** Listeners are wrapped: an `EventTarget` would report what they throw as an error of the process. */
  override addEventListener(...[type, listener, options]: Parameters<EventTarget["addEventListener"]>): void {
    super.addEventListener(type, this.#wrap(listener), options);
  }

  override removeEventListener(
    ...[type, listener, options]: Parameters<EventTarget["removeEventListener"]>
  ): void {
    super.removeEventListener(type, this.#wrap(listener), options);
  }

  #wrap<L extends Parameters<EventTarget["addEventListener"]>[1]>(listener: L): L {
    if (listener === null) return listener;
    const known =
      this.#wrapped.get(listener) ??
      ((event: Event) => {
        try {
          if (typeof listener === "function") listener.call(this, event);
          else listener.handleEvent(event);
        } catch (error) {
          this.#thrown ??= { error };
        }
      });
    this.#wrapped.set(listener, known);
    return known as L;
  }

  #dataOf(data: string | ArrayBuffer): unknown {
    return typeof data !== "string" && this.binaryType === "blob" ? new Blob([data]) : data;
  }

  #dispatch(frame: SocketFrame): void {
    const event =
      frame.kind === "message"
        ? new MessageEvent("message", { data: this.#dataOf(frame.data) })
        : new CloseEvent("close", { code: frame.code, reason: frame.reason, wasClean: frame.wasClean });
    const handler = frame.kind === "message" ? this.onmessage : this.onclose;
    try {
      handler?.call(this, event);
    } catch (error) {
      this.#thrown = { error };
    }
    this.dispatchEvent(event);
    const thrown = this.#thrown;
    if (thrown === null) return;
    this.#thrown = null;
    // As in the originals, the connection is broken.
    void this.#end.transmit({ kind: "close", code: 1006, reason: "", wasClean: false });
    throw thrown.error;
  }
}

/** WebSockets that objects accepted without hibernation: they end with the object in memory. */
const ACCEPTED = new WeakMap<ObjectWork, Set<SocketEnd>>();

function addAccepted(work: ObjectWork, end: SocketEnd): void {
  const ends = ACCEPTED.get(work);
  if (ends === undefined) ACCEPTED.set(work, new Set([end]));
  else {
    for (const other of ends) if (other.isClosed) ends.delete(other);
    ends.add(end);
  }
}

/** The object leaves memory: its clients must not wait for it. */
export function cutAccepted(work: ObjectWork): void {
  for (const end of ACCEPTED.get(work) ?? [])
    void end.transmit({ kind: "close", code: 1006, reason: "", wasClean: false });
  ACCEPTED.delete(work);
}

/** Two connected WebSockets: `const [client, server] = Object.values(new WebSocketPair())`. */
export class WebSocketPair {
  readonly 0: WorkerWebSocket;
  readonly 1: WorkerWebSocket;

  constructor() {
    const [first, second] = [new SocketEnd(), new SocketEnd()];
    first.peer = second;
    second.peer = first;
    this[0] = new WorkerWebSocket(first, null);
    this[1] = new WorkerWebSocket(second, null);
  }

  *[Symbol.iterator](): Generator<WorkerWebSocket> {
    yield this[0];
    yield this[1];
  }
}

/** For `ctx.setWebSocketAutoResponse`. */
export class WebSocketRequestResponsePair {
  readonly #request: string;
  readonly #response: string;

  constructor(request: string, response: string) {
    this.#request = request;
    this.#response = response;
  }

  get request(): string {
    return this.#request;
  }

  get response(): string {
    return this.#response;
  }
}

function toData(message: unknown): ArrayBuffer | string {
  if (message instanceof ArrayBuffer) return message.slice(0);
  if (!ArrayBuffer.isView(message)) return toText(message);
  return new Uint8Array(message.buffer, message.byteOffset, message.byteLength).slice().buffer;
}

const toText: (value: unknown) => string = String;

function checkClose(code: number | undefined, reason: string | undefined): void {
  if (code !== undefined && !isCloseCode(code))
    throw new DOMException(`Invalid WebSocket close code: ${code}.`, "InvalidAccessError");
  if (reason === undefined) return;
  if (code === undefined)
    throw new DOMException(
      "If you specify a WebSocket close reason, you must also specify a code.",
      "InvalidAccessError",
    );
  if (Buffer.byteLength(reason) > MAX_REASON_BYTES)
    throw new DOMException(
      `WebSocket close reason must not be longer than ${MAX_REASON_BYTES} bytes when UTF-8 encoded.`,
      "SyntaxError",
    );
}

/** Codes that a program may send; 1005, 1006 and 1015 are never sent (RFC 6455, section 7.4.1). */
function isCloseCode(code: number): boolean {
  return Number.isInteger(code) && code >= 1000 && code <= 4999 && ![1004, 1005, 1006, 1015].includes(code);
}

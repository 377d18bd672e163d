/**
 * One end of a pair of WebSockets whose other half is on another node: frames of the end go to the other node, frames of the other node to the end.
 *
 * Invariants:
 * 1. Frames arrive in order. Each is acknowledged when its event has ended, so that a client that sends faster than its object works is slowed down
 *    as on one node.
 * 2. If the other node is lost, the end is closed with 1006 once: the program sees what a cut connection shows.
 * 3. Frames that wait for a slow node have at most `maxBufferedBytes`; beyond that the connection is cut.
 */
import type { FrameOutcome, SocketEnd, SocketFrame } from "../../objects/web-socket.ts";
import { type MessageKind, MESSAGES } from "./wire-message.ts";

/** What tunnels use of their node. */
export interface TunnelHost {
  readonly maxBufferedBytes: number;
}

/** The session that the tunnel belongs to. */
export interface TunnelWire {
  send(kind: MessageKind, payload: Uint8Array): void;
  /** Both directions are closed. */
  over(): void;
}

interface Unhandled {
  readonly bytes: number;
  readonly resolve: (outcome: FrameOutcome) => void;
}

type CloseFrame = SocketFrame & { readonly kind: "close" };

const CUT: CloseFrame = { kind: "close", code: 1006, reason: "", wasClean: false };
const LOST: CloseFrame = {
  kind: "close",
  code: 1006,
  reason: "WebSocket disconnected without sending Close frame.",
  wasClean: false,
};

export class SocketTunnel {
  readonly #end: SocketEnd;
  readonly #host: TunnelHost;
  readonly #wire: TunnelWire;
  readonly #unhandled = new Map<number, Unhandled>();
  #bufferedBytes = 0;
  #nextFrame = 0;
  #nextReceived = 0;
  /** Frames of the other node whose events run. */
  #running = 0;
  #hasSentClose = false;
  #hasReceivedClose = false;
  #isOver = false;

  constructor(end: SocketEnd, host: TunnelHost, wire: TunnelWire) {
    this.#end = end;
    this.#host = host;
    this.#wire = wire;
  }

  /** Takes the frames of the end, beginning with those that have arrived. */
  start(): void {
    this.#end.connect((frame) => this.#forward(frame));
  }

  receive(kind: number, payload: Buffer): void {
    if (kind === MESSAGES.handled) this.#wasHandled(payload);
    else if (kind === MESSAGES.text) this.#deliver({ kind: "message", data: payload.toString("utf8") });
    else if (kind === MESSAGES.binary)
      this.#deliver({ kind: "message", data: new Uint8Array(payload).buffer });
    else if (kind === MESSAGES.close) this.#deliver(readClose(payload));
  }

  /** The other node is gone. */
  lost(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const unhandled = [...this.#unhandled.values()];
    this.#unhandled.clear();
    if (!this.#hasReceivedClose) void this.#end.transmit(LOST);
    for (const { resolve } of unhandled) resolve("handled");
  }

  #forward(frame: SocketFrame): Promise<FrameOutcome> | undefined {
    if (this.#isOver) return undefined;
    const bytes = payloadOf(frame);
    this.#bufferedBytes += bytes.length;
    if (this.#bufferedBytes > this.#host.maxBufferedBytes && this.#unhandled.size > 0) {
      this.#cut();
      return undefined;
    }
    this.#wire.send(kindOf(frame), bytes);
    if (frame.kind === "close") this.#hasSentClose = true;
    const number = this.#nextFrame++;
    return new Promise((resolve) => this.#unhandled.set(number, { bytes: bytes.length, resolve }));
  }

  /** The other node, or its client, does not take the frames. */
  #cut(): void {
    this.#wire.send(MESSAGES.close, closePayload(CUT));
    this.#hasSentClose = true;
    this.lost();
    this.#wire.over();
  }

  #deliver(frame: SocketFrame): void {
    const number = this.#nextReceived++;
    if (frame.kind === "close") this.#hasReceivedClose = true;
    this.#running += 1;
    const ended = (outcome: FrameOutcome) => {
      this.#running -= 1;
      const payload = Buffer.from([0, 0, 0, 0, outcome === "handled" ? 0 : 1]);
      payload.writeUInt32LE(number);
      this.#wire.send(MESSAGES.handled, payload);
      this.#check();
    };
    const handled = this.#end.transmit(frame);
    if (handled === undefined) ended("handled");
    else
      handled.then(
        (outcome) => ended(outcome ?? "handled"),
        () => ended("handled"),
      );
  }

  #wasHandled(payload: Buffer): void {
    const number = payload.readUInt32LE();
    const unhandled = this.#unhandled.get(number);
    if (unhandled === undefined) return;
    this.#unhandled.delete(number);
    this.#bufferedBytes -= unhandled.bytes;
    unhandled.resolve(payload[4] === 0 ? "handled" : "not run");
    this.#check();
  }

  #check(): void {
    const isClosed = this.#hasSentClose && this.#hasReceivedClose;
    if (this.#isOver || !isClosed || this.#unhandled.size > 0 || this.#running > 0) return;
    this.#isOver = true;
    this.#wire.over();
  }
}

function kindOf(frame: SocketFrame): MessageKind {
  if (frame.kind === "close") return MESSAGES.close;
  return typeof frame.data === "string" ? MESSAGES.text : MESSAGES.binary;
}

function payloadOf(frame: SocketFrame): Uint8Array {
  if (frame.kind === "close") return closePayload(frame);
  return typeof frame.data === "string" ? Buffer.from(frame.data) : new Uint8Array(frame.data);
}

function closePayload(frame: CloseFrame): Buffer {
  const head = Buffer.from([0, 0, frame.wasClean ? 1 : 0]);
  head.writeUInt16LE(frame.code);
  return Buffer.concat([head, Buffer.from(frame.reason)]);
}

function readClose(payload: Buffer): SocketFrame {
  return {
    kind: "close",
    code: payload.readUInt16LE(),
    wasClean: payload[2] === 1,
    reason: payload.toString("utf8", 3),
  };
}

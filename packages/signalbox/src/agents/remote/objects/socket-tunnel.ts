/**
 * One end of a pair of WebSockets whose other half is on another node: frames of the end go to the other node, frames of the other node to the end.
 * At the node of the client (the edge) the tunnel stays when the object moves, and gets another route.
 *
 *   routed ── moved: the object is about to be elsewhere ──► moving ── every frame of the old route is settled ──► routed, or local
 *     └──── both directions are closed, or the route is lost ────► over
 *
 * Invariants:
 * 1. Frames arrive in order. Each is acknowledged when its event has ended, so that a client that sends faster than its object works is slowed down
 *    as on one node.
 * 2. A frame that was not run before the move goes to the new owner, before those that came later. If the outcome of a frame is unknown, the
 *    connection is cut: the client must not wait for an answer that never comes.
 * 3. If the other node is lost, the end is closed with 1006 once: the program sees what a cut connection shows.
 * 4. Frames that wait for a slow node have at most `maxBufferedBytes`; beyond that the connection is cut.
 */
import type { FrameOutcome, FrameReceiver, SocketEnd, SocketFrame } from "../../objects/web-socket.ts";
import { closePayload, CUT, frameOf, kindOf, LOST, payloadOf } from "./wire-frames.ts";
import { type MessageKind, MESSAGES } from "./wire-message.ts";

/** What tunnels use of their node. */
export interface TunnelHost {
  readonly maxBufferedBytes: number;
  /** Finds the new place of the socket: a route to another node, or the receiver of an object on this one. `move` is the payload of the message. */
  follow(move: Uint8Array, tunnel: SocketTunnel): Promise<Route | FrameReceiver>;
}

/** The session that a tunnel goes through. */
export interface TunnelWire {
  send(kind: MessageKind, payload: Uint8Array): void;
  /** The tunnel needs the session no more. */
  over(): void;
}

/** A wire with the numbers of its frames. */
export class Route {
  readonly wire: TunnelWire;
  nextFrame = 0;
  nextReceived = 0;

  constructor(wire: TunnelWire) {
    this.wire = wire;
  }
}

interface Waiting {
  readonly frame: SocketFrame;
  readonly bytes: number;
  readonly resolve: (outcome: FrameOutcome) => void;
}

const NOTHING = new Uint8Array(0);

export class SocketTunnel {
  readonly end: SocketEnd;
  readonly #host: TunnelHost;
  /** Null for a tunnel that begins with a move of this node. */
  #route: Route | null = null;
  /** Frames that were sent and not acknowledged. */
  readonly #unhandled = new Map<number, Waiting>();
  /** While the object moves: frames that the old owner has not run, and those that came later. */
  #returned: Waiting[] = [];
  #queued: Waiting[] = [];
  #isMoving = false;
  #next: Route | FrameReceiver | null = null;
  /** The object moves on before the socket has arrived. */
  #nextMove: { readonly route: Route; readonly payload: Buffer } | null = null;
  #arrived: (() => void) | null = null;
  /** Resolves when the other side has found its new place. */
  #onMoved: (() => void) | null = null;
  #bufferedBytes = 0;
  /** Frames of the other node whose events run. */
  #running = 0;
  #hasSentClose = false;
  #hasReceivedClose = false;
  #isOver = false;

  constructor(end: SocketEnd, host: TunnelHost) {
    this.end = end;
    this.#host = host;
  }

  /** Takes the frames of the end, beginning with those that have arrived. */
  start(route: Route): void {
    this.#route = route;
    this.end.peer.relocate = (move) => this.#relocate(move);
    this.end.connect((frame) => this.#forward(frame));
  }

  /** The object of this node moves away, and its client stays: frames wait until `settle`. */
  startMoving(): void {
    this.#beginMove();
    this.end.onReturn = (frame) => this.#returned.push({ frame, bytes: 0, resolve: () => undefined });
    this.end.connect((frame) => this.#forward(frame));
  }

  /** The new place is known. */
  goOn(next: Route | FrameReceiver): void {
    this.#next = next;
  }

  /** Goes on at the new place, if the old one has settled everything. */
  settle(): void {
    if (!this.#isMoving || this.#next === null || this.#unhandled.size > 0 || this.#isOver) return;
    const [old, next] = [this.#route, this.#next];
    this.#isMoving = false;
    this.#next = null;
    this.end.onReturn = null;
    const waiting = [...this.#returned, ...this.#queued];
    this.#returned = [];
    this.#queued = [];
    this.#endMove();
    if (next instanceof Route) {
      this.#route = next;
      for (const { frame, bytes, resolve } of waiting) {
        this.#bufferedBytes -= bytes;
        void this.#forward(frame)?.then(resolve);
      }
    } else {
      this.#isOver = true;
      this.end.connect(next);
      for (const { frame, resolve } of waiting) {
        const handled = next(frame);
        if (handled === undefined) resolve("handled");
        else
          handled.then(
            (outcome) => resolve(outcome ?? "handled"),
            () => resolve("handled"),
          );
      }
    }
    old?.wire.over();
    const then = this.#nextMove;
    this.#nextMove = null;
    if (then !== null) this.#moved(then.route, then.payload);
  }

  #beginMove(): void {
    this.#isMoving = true;
    this.end.moving ??= new Promise((resolve) => {
      this.#arrived = resolve;
    });
  }

  #endMove(): void {
    this.end.moving = null;
    this.#arrived?.();
  }

  receive(route: Route, kind: number, payload: Buffer): void {
    if (kind === MESSAGES.handled) this.#wasHandled(payload);
    else if (kind === MESSAGES.moved) this.#moved(route, payload);
    else {
      const frame = frameOf(kind, payload);
      if (frame !== null) this.#deliver(route, frame);
    }
  }

  /** The node at the other end of the route is gone. */
  lost(route: Route | null): void {
    if (this.#isOver) return;
    this.#onMoved?.();
    if (this.#isMoving && route === this.#route && this.#unhandled.size === 0) return;
    this.#close(LOST);
    if (this.#next instanceof Route && this.#next !== route) {
      this.#next.wire.send(MESSAGES.close, closePayload(LOST));
      this.#next.wire.over();
    }
  }

  /** Tells the edge where the object goes. Resolves when the new owner knows the socket, or the edge is gone. */
  #relocate(move: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isOver || this.#route === null) {
        resolve();
        return;
      }
      this.#onMoved = resolve;
      this.#route.wire.send(MESSAGES.moved, move);
    });
  }

  #moved(route: Route, payload: Buffer): void {
    // The edge's answer.
    if (payload.length === 0) {
      this.#onMoved?.();
      this.#isOver = true;
      return;
    }
    if (this.#isMoving && route === this.#next) {
      this.#nextMove = { route, payload };
      return;
    }
    if (route !== this.#route || this.#next !== null || this.#isOver) return;
    this.#beginMove();
    this.#host.follow(payload, this).then(
      (next) => {
        if (this.#isOver) return;
        this.#next = next;
        route.wire.send(MESSAGES.moved, NOTHING);
        this.settle();
      },
      () => {
        route.wire.send(MESSAGES.moved, NOTHING);
        this.#close(CUT);
        route.wire.over();
      },
    );
  }

  #forward(frame: SocketFrame): Promise<FrameOutcome> | undefined {
    if (this.#isOver) return undefined;
    const payload = payloadOf(frame);
    const bytes = payload.length;
    this.#bufferedBytes += bytes;
    if (this.#bufferedBytes > this.#host.maxBufferedBytes && this.#unhandled.size + this.#queued.length > 0) {
      this.#cut();
      return undefined;
    }
    const route = this.#route;
    return new Promise((resolve) => {
      const waiting = { frame, bytes, resolve };
      if (this.#isMoving || route === null) {
        this.#queued.push(waiting);
        return;
      }
      if (frame.kind === "close") this.#hasSentClose = true;
      this.#unhandled.set(route.nextFrame++, waiting);
      route.wire.send(kindOf(frame), payload);
    });
  }

  /** The other node, or its client, does not take the frames. */
  #cut(): void {
    const route = this.#route;
    route?.wire.send(MESSAGES.close, closePayload(CUT));
    this.#close(CUT);
    route?.wire.over();
  }

  /** Ends the tunnel, and the end with it. */
  #close(frame: SocketFrame): void {
    this.#isOver = true;
    this.#endMove();
    const waiting = [...this.#unhandled.values(), ...this.#returned, ...this.#queued];
    this.#unhandled.clear();
    if (!this.#hasReceivedClose) void this.end.transmit(frame);
    for (const { resolve } of waiting) resolve("handled");
  }

  #deliver(route: Route, frame: SocketFrame): void {
    const number = route.nextReceived++;
    if (frame.kind === "close") this.#hasReceivedClose = true;
    this.#running += 1;
    const ended = (outcome: FrameOutcome) => {
      this.#running -= 1;
      const payload = Buffer.from([0, 0, 0, 0, outcome === "handled" ? 0 : 1]);
      payload.writeUInt32LE(number);
      route.wire.send(MESSAGES.handled, payload);
      this.#check();
    };
    const handled = this.end.transmit(frame);
    if (handled === undefined) ended("handled");
    else
      handled.then(
        (outcome) => ended(outcome ?? "handled"),
        () => ended("handled"),
      );
  }

  #wasHandled(payload: Buffer): void {
    const number = payload.readUInt32LE();
    const waiting = this.#unhandled.get(number);
    if (waiting === undefined) return;
    this.#unhandled.delete(number);
    if (payload[4] === 0) {
      this.#bufferedBytes -= waiting.bytes;
      waiting.resolve("handled");
    } else {
      // Its message `moved` follows, or has arrived.
      this.#beginMove();
      this.#returned.push(waiting);
    }
    this.settle();
    this.#check();
  }

  #check(): void {
    const isClosed = this.#hasSentClose && this.#hasReceivedClose;
    if (this.#isOver || !isClosed || this.#unhandled.size > 0 || this.#running > 0) return;
    this.#isOver = true;
    this.#route?.wire.over();
  }
}

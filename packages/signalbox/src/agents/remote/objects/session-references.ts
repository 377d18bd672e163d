/** What the two sides of one session offer each other: call targets, signals and WebSockets, by their numbers. */
import type { NodeInc } from "../../../core/node-inc.ts";
import type { Link, LinkStream } from "../../../engines/node-link/index.ts";
import type { ObjectAddress } from "../../objects/object-calls.ts";
import type { CallTarget } from "../../objects/rpc-stub.ts";
import { endOf, WebSocketPair, type WorkerWebSocket } from "../../objects/web-socket.ts";
import type { BrokenSessions } from "./broken-sessions.ts";
import type { Finds, Offers, Reference } from "./references.ts";
import { Route, SocketTunnel, type TunnelHost } from "./socket-tunnel.ts";
import { type MessageKind, MESSAGES, RELEASE } from "./wire-message.ts";
import { encodeValue, plainReason } from "./wire-values.ts";

/** What sessions use of their node. */
export interface SessionHost extends TunnelHost {
  readonly network: { linkTo(node: NodeInc): Pick<Link, "openStream"> | null };
  /** A stub of an object that the other side named; null: the other side is no node, and cannot name objects. */
  readonly objectStub: ((address: ObjectAddress) => object) | null;
  /** Sessions that other nodes have opened, by their ids. */
  readonly sessions: Map<string, ServedSession>;
  /** Sessions that wait for their links. */
  readonly broken: Pick<BrokenSessions, "add">;
  /** A session is over, for whatever reason. */
  readonly onOver?: () => void;
}

/** A session that another node has opened. */
export interface ServedSession {
  readonly node: string;
  /** The other node goes on after a break; it has so many items. */
  resume(stream: LinkStream, received: number): void;
  /** This node stops: what the other side holds of it works no more. */
  close(): void;
}

/** How a session ended: in order, by a failure, or before its call was run. */
export type SessionEnd = "ended" | "failed" | "not run";

/** The session that the references belong to. */
export interface ReferenceWire {
  send(kind: MessageKind, id: number, payload: Uint8Array): void;
  call(reference: Reference, path: readonly string[], args: readonly unknown[] | null): Promise<unknown>;
  /** Something is used no more. */
  changed(): void;
}

interface Offered {
  readonly target: CallTarget;
  readonly onRelease: (wasDisposed: boolean) => void;
}

interface Tunnelled {
  readonly tunnel: SocketTunnel;
  readonly route: Route;
}

/** A signal of this side, and the listener that tells the other. */
interface Signal {
  readonly signal: AbortSignal;
  readonly listener: () => void;
}

/** The signals of a call that was answered: they are needed until what the answer brought is used no more. */
interface Answered {
  readonly signals: readonly Reference[];
  open: number;
}

interface Collected {
  readonly references: WeakRef<SessionReferences>;
  readonly reference: Reference;
}

/** Programs rarely dispose stubs: what no code refers to any more is released, too. */
const COLLECTED = new FinalizationRegistry<Collected>(({ references, reference }) =>
  references.deref()?.release(reference, RELEASE.collected),
);

export class SessionReferences implements Offers, Finds {
  readonly #host: SessionHost;
  readonly #wire: ReferenceWire;
  readonly #offered = new Map<Reference, Offered>();
  /** Targets of the other side that are in use here. */
  readonly #held = new Map<Reference, Answered | null>();
  readonly #tunnels = new Map<Reference, Tunnelled>();
  readonly #signals = new Map<Reference, Signal>();
  /** Of signals of the other side. */
  readonly #controllers = new Map<Reference, AbortController>();
  /** Of the value that is being encoded: their frames follow the message that names them. */
  #newTunnels: Tunnelled[] = [];
  #newSignals: Reference[] = [];
  /** Whose answer is being decoded. */
  #answered: Answered | null = null;
  /** How often something of the other side was used: calls of its targets, pieces of its streams, frames of WebSockets. */
  #uses = 0;
  #next: Reference;

  constructor(first: Reference, host: SessionHost, wire: ReferenceWire) {
    this.#next = first;
    this.#host = host;
    this.#wire = wire;
  }

  get isEmpty(): boolean {
    return this.#offered.size + this.#held.size + this.#tunnels.size === 0;
  }

  /** Targets, streams and WebSockets of the other side that are in use here. */
  get heldCount(): number {
    return this.#held.size + this.#tunnels.size;
  }

  get uses(): number {
    return this.#uses;
  }

  get hasTunnels(): boolean {
    return this.#tunnels.size > 0;
  }

  get tunnelNumbers(): Reference[] {
    return [...this.#tunnels.keys()];
  }

  /** The bytes of a value. If a part of it cannot be encoded, nothing of it was offered. */
  encode(value: unknown): Buffer {
    const mark = this.#next;
    this.#newSignals = [];
    try {
      return encodeValue(value, this);
    } catch (error) {
      for (let reference = mark; reference < this.#next; reference += 2) {
        this.#offered.delete(reference);
        this.#tunnels.delete(reference);
      }
      this.#newTunnels = [];
      for (const reference of this.#newSignals) this.#forgetSignal(reference);
      throw error;
    }
  }

  /** Of the value that was encoded last. */
  get newSignals(): readonly Reference[] {
    return this.#newSignals;
  }

  /** A call with these signals was answered; `decode` reads the answer. */
  answered<T>(signals: readonly Reference[], decode: () => T): T {
    if (signals.length === 0) return decode();
    const answered: Answered = { signals, open: 1 };
    this.#answered = answered;
    try {
      return decode();
    } finally {
      this.#answered = null;
      this.#close(answered);
    }
  }

  /** The message that names the new tunnels was sent. */
  startTunnels(): void {
    const tunnels = this.#newTunnels;
    this.#newTunnels = [];
    for (const { tunnel, route } of tunnels) tunnel.start(route);
  }

  /** A tunnel that exists goes through this session from now on; its new number. */
  adopt(tunnel: SocketTunnel): { readonly reference: Reference; readonly route: Route } {
    const reference = this.#take();
    const { route } = this.#add(reference, tunnel);
    return { reference, route };
  }

  offered(reference: Reference): CallTarget | undefined {
    return this.#offered.get(reference)?.target;
  }

  /** The other side needs an offered target no more. */
  released(reference: Reference, wasDisposed: boolean): void {
    // Or it is a signal of the other side that aborts no more.
    this.#controllers.delete(reference);
    const offered = this.#offered.get(reference);
    this.#offered.delete(reference);
    offered?.onRelease(wasDisposed);
  }

  /** This side needs a target of the other no more. */
  release(reference: Reference, how: Uint8Array = RELEASE.disposed): void {
    const answered = this.#held.get(reference);
    if (!this.#held.delete(reference)) return;
    this.#wire.send(MESSAGES.release, reference, how);
    this.#close(answered);
    this.#wire.changed();
  }

  aborted(reference: Reference, reason: unknown): void {
    this.#controllers.get(reference)?.abort(reason);
    this.#controllers.delete(reference);
  }

  receiveFrame(reference: Reference, kind: number, payload: Buffer): void {
    const found = this.#tunnels.get(reference);
    if (found !== undefined) this.#uses += 1;
    found?.tunnel.receive(found.route, kind, payload);
  }

  target(reference: Reference): CallTarget;
  target(target: CallTarget, onRelease: (wasDisposed: boolean) => void): Reference;
  target(
    given: Reference | CallTarget,
    onRelease: (wasDisposed: boolean) => void = () => undefined,
  ): CallTarget | Reference {
    if (typeof given === "number") return this.#hold(given);
    const reference = this.#take();
    this.#offered.set(reference, { target: given, onRelease });
    return reference;
  }

  signal(reference: Reference): AbortSignal;
  signal(signal: AbortSignal): Reference;
  signal(given: Reference | AbortSignal): AbortSignal | Reference {
    if (typeof given === "number") {
      const controller = new AbortController();
      this.#controllers.set(given, controller);
      return controller.signal;
    }
    const reference = this.#take();
    const listener = () => {
      this.#signals.delete(reference);
      this.#wire.send(MESSAGES.abort, reference, encodeValue(plainReason(given.reason), this));
    };
    given.addEventListener("abort", listener, { once: true });
    this.#signals.set(reference, { signal: given, listener });
    this.#newSignals.push(reference);
    return reference;
  }

  socket(reference: Reference): WorkerWebSocket;
  socket(webSocket: WorkerWebSocket): Reference;
  socket(given: Reference | WorkerWebSocket): WorkerWebSocket | Reference {
    if (typeof given !== "number") {
      const reference = this.#take();
      this.#newTunnels.push(this.#add(reference, new SocketTunnel(endOf(given), this.#host)));
      return reference;
    }
    const pair = new WebSocketPair();
    const { tunnel, route } = this.#add(given, new SocketTunnel(endOf(pair[1]), this.#host));
    tunnel.start(route);
    return pair[0];
  }

  get sharesObjects(): boolean {
    return this.#host.objectStub !== null;
  }

  object(address: ObjectAddress): object {
    const { objectStub } = this.#host;
    if (objectStub === null) throw new Error("the other side names an object that it cannot know");
    return objectStub(address);
  }

  /** `end`: how the session ended. After a failure, what was offered counts as disposed by the other side. */
  finish(end: SessionEnd): void {
    const tunnels = [...this.#tunnels.values()];
    this.#tunnels.clear();
    this.finishCalls(end);
    if (end !== "not run") for (const { tunnel, route } of tunnels) tunnel.lost(route);
  }

  /** Everything but the WebSockets ends. */
  finishCalls(end: SessionEnd): void {
    for (const reference of this.#signals.keys()) this.#forgetSignal(reference);
    const offered = [...this.#offered.values()];
    this.#offered.clear();
    this.#held.clear();
    if (end === "not run") return;
    for (const { onRelease } of offered) onRelease(true);
    if (end === "ended") return;
    // What waits for a signal of the other node waits for a node that is gone.
    for (const controller of this.#controllers.values())
      controller.abort(new DOMException("The node of the caller is gone.", "AbortError"));
    this.#controllers.clear();
  }

  /** The other side has these WebSockets; those that it never received, or has given up, are cut. */
  keepTunnels(alive: ReadonlySet<Reference>): void {
    for (const [reference, { tunnel, route }] of this.#tunnels) {
      if (alive.has(reference)) continue;
      this.#tunnels.delete(reference);
      tunnel.lost(route);
    }
  }

  #take(): Reference {
    const reference = this.#next;
    this.#next += 2;
    return reference;
  }

  #hold(reference: Reference): CallTarget {
    this.#held.set(reference, this.#use());
    const target: CallTarget = {
      send: (path, args) => {
        this.#uses += 1;
        return this.#wire.call(reference, path, args);
      },
      dispose: () => this.release(reference),
    };
    COLLECTED.register(target, { references: new WeakRef(this), reference });
    return target;
  }

  /** Something that is in use from now on belongs to the answer that is being decoded. */
  #use(): Answered | null {
    if (this.#answered !== null) this.#answered.open += 1;
    return this.#answered;
  }

  #close(answered: Answered | null | undefined): void {
    if (answered === null || answered === undefined) return;
    answered.open -= 1;
    if (answered.open > 0) return;
    for (const reference of answered.signals)
      if (this.#forgetSignal(reference)) this.#wire.send(MESSAGES.release, reference, RELEASE.disposed);
  }

  /** False if it has aborted. */
  #forgetSignal(reference: Reference): boolean {
    const found = this.#signals.get(reference);
    found?.signal.removeEventListener("abort", found.listener);
    return this.#signals.delete(reference);
  }

  #add(reference: Reference, tunnel: SocketTunnel): Tunnelled {
    const answered = this.#use();
    const route = new Route({
      send: (kind, payload) => {
        this.#uses += 1;
        this.#wire.send(kind, reference, payload);
      },
      over: () => {
        this.#tunnels.delete(reference);
        this.#close(answered);
        this.#wire.changed();
      },
    });
    const tunnelled = { tunnel, route };
    this.#tunnels.set(reference, tunnelled);
    return tunnelled;
  }
}

/**
 * One side of a session between two nodes: the calls of both directions, and what their values refer to. A session belongs to one call of a stub. It
 * lives as long as the call runs, or either side holds something of the other: a stub, a stream, a WebSocket.
 *
 *   new ─ start(stream) → open ─ nothing is left (the caller ends it) → over
 *                              └ the stream fails, or is refused → over
 *
 * Invariants:
 * 1. Every call ends once: with a result, with what was thrown, or with the failure of the session.
 * 2. References of the caller's side are odd, those of the other side even; each belongs to the side that made it.
 * 3. The caller ends the session when it neither offers nor holds anything and no call runs. Releases were sent before, so the other side cannot
 *    need anything any more.
 * 4. After a failure, what this side offered is released as if the other side had disposed it, unless the call was not run at all.
 */
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import type { LinkStream } from "../../../engines/node-link/index.ts";
import type { ObjectAddress } from "../../objects/object-calls.ts";
import { finalError, toRemoteError } from "../../objects/remote-error.ts";
import type { CallTarget } from "../../objects/rpc-stub.ts";
import { endOf, type SocketEnd, WebSocketPair, type WorkerWebSocket } from "../../objects/web-socket.ts";
import type { Finds, Offers, Reference } from "./references.ts";
import { SocketTunnel, type TunnelHost } from "./socket-tunnel.ts";
import { describeThrown, thrownOf, type WireThrown } from "./wire-errors.ts";
import { MAX_MESSAGE_BYTES, type MessageKind, MessageReader, MESSAGES, RELEASE, writeMessage } from "./wire-message.ts";
import { decodeResult, decodeValue, encodeValue, plainReason, reasonOf } from "./wire-values.ts";

/** What sessions use of their node. */
export interface SessionHost extends TunnelHost {
  /** A stub of an object that the other side named. */
  objectStub(address: ObjectAddress): object;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Offered {
  readonly target: CallTarget;
  readonly onRelease: (wasDisposed: boolean) => void;
}

interface Collected {
  readonly session: WeakRef<CallSession>;
  readonly reference: Reference;
}

/** Programs rarely dispose stubs: what no code refers to any more is released, too. */
const COLLECTED = new FinalizationRegistry<Collected>(({ session, reference }) =>
  session.deref()?.release(reference, RELEASE.collected),
);

/** The call with which the session is opened. */
export const FIRST_CALL = 0;

export class CallSession implements Offers, Finds {
  readonly #host: SessionHost;
  readonly #isCaller: boolean;
  readonly #reader = new MessageReader();
  readonly #pending = new Map<number, Pending>();
  readonly #offered = new Map<Reference, Offered>();
  /** Targets of the other side that are in use here. */
  readonly #held = new Set<Reference>();
  readonly #tunnels = new Map<Reference, SocketTunnel>();
  /** Signals of this side, with the listeners that tell the other. */
  readonly #signals = new Map<AbortSignal, () => void>();
  /** Of signals of the other side. */
  readonly #controllers = new Map<Reference, AbortController>();
  /** Of the value that is being encoded: their frames follow the message that names them. */
  #newTunnels: SocketTunnel[] = [];
  #stream: LinkStream | null = null;
  #nextReference: number;
  #nextCall = 1;
  /** Calls of the other side that run here. */
  #serving = 0;
  #isOver = false;

  constructor(side: "caller" | "owner", host: SessionHost) {
    this.#isCaller = side === "caller";
    this.#nextReference = this.#isCaller ? 1 : 2;
    this.#host = host;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  start(stream: LinkStream): void {
    this.#stream = stream;
    stream.start({
      onData: (bytes) => this.#read(bytes),
      onEnd: () => {
        stream.end();
        this.#finish("ended");
      },
      onFailure: ({ code, message, details }) => {
        if (code === "elsewhere") this.fail(new InstanceElsewhereError(nodeOf(details)), "not run");
        else this.fail(connectionLost(message), "failed");
      },
    });
  }

  /** The result of the call with which the session is opened. */
  first(): Promise<unknown> {
    this.#startTunnels();
    return new Promise((resolve, reject) => this.#pending.set(FIRST_CALL, { resolve, reject }));
  }

  /** Runs a call of the other side and sends its outcome; the target decides what a call means. */
  serve(id: number, run: () => Promise<unknown>): void {
    this.#serving += 1;
    run()
      .then(
        (value) => this.#answer(id, value),
        (error: unknown) => this.#answerThrown(id, error),
      )
      .finally(() => {
        this.#serving -= 1;
        this.#check();
      });
  }

  /** The object is on another node: nothing was run. */
  refuse(node: string | null): void {
    this.#stream?.reset({ code: "elsewhere", message: "the instance is on another node", details: { node } });
    this.#finish("not run");
  }

  /** Ends the session because of a failure. */
  fail(error: Error, end: "failed" | "not run"): void {
    if (this.#isOver) return;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#finish(end);
    for (const { reject } of pending) reject(error);
  }

  release(reference: Reference, how: Uint8Array = RELEASE.disposed): void {
    if (!this.#held.delete(reference)) return;
    this.#send(MESSAGES.release, reference, how);
    this.#check();
  }

  // Offers: what this side lets the other use. Finds: what the other side offered.

  target(reference: Reference): CallTarget;
  target(target: CallTarget, onRelease: (wasDisposed: boolean) => void): Reference;
  target(
    given: Reference | CallTarget,
    onRelease: (wasDisposed: boolean) => void = () => undefined,
  ): CallTarget | Reference {
    if (typeof given === "number") return this.#importTarget(given);
    const reference = this.#takeReference();
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
    const reference = this.#takeReference();
    const listener = () =>
      this.#sendValue(MESSAGES.abort, reference, this.encode(plainReason(given.reason)));
    given.addEventListener("abort", listener, { once: true });
    this.#signals.set(given, listener);
    return reference;
  }

  socket(reference: Reference): WorkerWebSocket;
  socket(webSocket: WorkerWebSocket): Reference;
  socket(given: Reference | WorkerWebSocket): WorkerWebSocket | Reference {
    if (typeof given !== "number") {
      const reference = this.#takeReference();
      this.#newTunnels.push(this.#addTunnel(reference, endOf(given)));
      return reference;
    }
    const pair = new WebSocketPair();
    this.#addTunnel(given, endOf(pair[1])).start();
    return pair[0];
  }

  object(address: ObjectAddress): object {
    return this.#host.objectStub(address);
  }

  #importTarget(reference: Reference): CallTarget {
    this.#held.add(reference);
    const target: CallTarget = {
      send: (path, args) => this.#call(reference, path, args),
      dispose: () => this.release(reference),
    };
    COLLECTED.register(target, { session: new WeakRef(this), reference });
    return target;
  }

  #addTunnel(reference: Reference, end: SocketEnd): SocketTunnel {
    const tunnel = new SocketTunnel(end, this.#host, {
      send: (kind, payload) => this.#send(kind, reference, payload),
      over: () => {
        this.#tunnels.delete(reference);
        this.#check();
      },
    });
    this.#tunnels.set(reference, tunnel);
    return tunnel;
  }

  #call(reference: Reference, path: readonly string[], args: readonly unknown[] | null): Promise<unknown> {
    if (this.#isOver) return Promise.reject(connectionLost("the session has ended"));
    const id = this.#nextCall++;
    return new Promise((resolve, reject) => {
      const payload = this.encode([reference, path, args]);
      this.#pending.set(id, { resolve, reject });
      this.#sendValue(MESSAGES.call, id, payload);
    });
  }

  #answer(id: number, value: unknown): void {
    if (this.#isOver) return;
    if (value instanceof Uint8Array && value.length <= MAX_MESSAGE_BYTES) {
      this.#send(MESSAGES.bytes, id, value);
      return;
    }
    let payload: Buffer;
    try {
      payload = this.encode(value);
    } catch (error) {
      this.#answerThrown(id, error);
      return;
    }
    this.#sendValue(MESSAGES.result, id, payload);
  }

  #answerThrown(id: number, error: unknown): void {
    if (this.#isOver) return;
    const remote = toRemoteError(error);
    let payload: Buffer;
    try {
      payload = this.encode(describeThrown(remote));
    } catch {
      payload = this.encode(describeThrown(new Error(String(remote))));
    }
    this.#sendValue(MESSAGES.thrown, id, payload);
  }

  #read(bytes: Buffer): void {
    try {
      this.#reader.read(bytes, (kind, id, payload) => {
        if (!this.#isOver) this.#receive(kind, id, payload);
      });
    } catch (error) {
      this.#stream?.reset({ code: "broken", message: "a message could not be read" });
      this.fail(connectionLost(error instanceof Error ? error.message : String(error)), "failed");
    }
  }

  #receive(kind: number, id: number, payload: Buffer): void {
    switch (kind) {
      case MESSAGES.call:
        this.#serveCall(id, payload);
        return;
      case MESSAGES.result: {
        const pending = this.#take(id);
        decodeResult(payload, this).then(pending?.resolve, pending?.reject);
        break;
      }
      case MESSAGES.bytes:
        this.#take(id)?.resolve(new Uint8Array(payload));
        break;
      case MESSAGES.thrown: {
        const { value } = decodeValue(payload, this);
        this.#take(id)?.reject(thrownOf(value as WireThrown));
        break;
      }
      case MESSAGES.release: {
        const offered = this.#offered.get(id);
        this.#offered.delete(id);
        offered?.onRelease(payload[0] === RELEASE.disposed[0]);
        break;
      }
      case MESSAGES.abort:
        this.#controllers.get(id)?.abort(reasonOf(decodeValue(payload, this).value));
        this.#controllers.delete(id);
        return;
      default:
        this.#tunnels.get(id)?.receive(kind, payload);
        return;
    }
    this.#check();
  }

  #serveCall(id: number, payload: Buffer): void {
    const decoded = decodeValue(payload, this);
    this.serve(id, async () => {
      if (decoded.loading !== null) await decoded.loading;
      const [reference, path, args] = decoded.value as [Reference, string[], unknown[] | null];
      const offered = this.#offered.get(reference);
      if (offered === undefined) throw new Error("RPC stub used after being disposed.");
      return offered.target.send(path, args);
    });
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #takeReference(): Reference {
    const reference = this.#nextReference;
    this.#nextReference += 2;
    return reference;
  }

  /** The bytes of a value. If a part of it cannot be encoded, nothing of it was offered. */
  encode(value: unknown): Buffer {
    const mark = this.#nextReference;
    try {
      return encodeValue(value, this);
    } catch (error) {
      for (const reference of this.#offered.keys()) if (reference >= mark) this.#withdraw(reference, mark);
      for (const reference of this.#tunnels.keys()) if (reference >= mark) this.#withdraw(reference, mark);
      this.#newTunnels = [];
      throw error;
    }
  }

  #withdraw(reference: Reference, mark: Reference): void {
    // The other side's references have the other parity.
    if (reference % 2 !== mark % 2) return;
    this.#offered.delete(reference);
    this.#tunnels.delete(reference);
  }

  #sendValue(kind: MessageKind, id: number, payload: Uint8Array): void {
    this.#send(kind, id, payload);
    this.#startTunnels();
  }

  #startTunnels(): void {
    const tunnels = this.#newTunnels;
    this.#newTunnels = [];
    for (const tunnel of tunnels) tunnel.start();
  }

  #send(kind: MessageKind, id: number, payload: Uint8Array): void {
    if (!this.#isOver) this.#stream?.write(writeMessage(kind, id, payload));
  }

  /** Invariant 3. Decided later: the code that gets a result may use what it holds at once. */
  #check(): void {
    if (!this.#isCaller || !this.#isUnused) return;
    setImmediate(() => {
      if (this.#isOver || !this.#isUnused) return;
      this.#stream?.end();
      this.#finish("ended");
    });
  }

  get #isUnused(): boolean {
    const { size } = this.#tunnels;
    return (
      this.#pending.size + this.#offered.size + this.#held.size + size + this.#serving === 0 &&
      this.#stream !== null
    );
  }

  #finish(end: "ended" | "failed" | "not run"): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const [signal, listener] of this.#signals) signal.removeEventListener("abort", listener);
    const offered = [...this.#offered.values()];
    this.#offered.clear();
    this.#held.clear();
    const tunnels = [...this.#tunnels.values()];
    this.#tunnels.clear();
    if (end !== "not run") {
      for (const { onRelease } of offered) onRelease(true);
      for (const tunnel of tunnels) tunnel.lost();
    }
    if (end !== "failed") return;
    // What waits for a signal of the other node waits for a node that is gone.
    for (const controller of this.#controllers.values())
      controller.abort(new DOMException("The node of the caller is gone.", "AbortError"));
  }
}

/** As in the originals: the outcome of the call is not known. */
export function connectionLost(reason: string): Error {
  const error = new Error("Network connection lost.", { cause: new Error(reason) });
  return finalError(Object.assign(error, { retryable: true }));
}

function nodeOf(details: unknown): string | null {
  const { node } = (details ?? {}) as { node?: unknown };
  return typeof node === "string" ? node : null;
}

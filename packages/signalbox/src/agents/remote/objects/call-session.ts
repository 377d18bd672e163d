/**
 * One side of a session between two nodes: the calls of both directions. A session belongs to one call of a stub. It lives as long as the call runs, or
 * either side holds something of the other: a stub, a stream, a WebSocket.
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
import { NotSentError } from "../../placement/placement.ts";
import { finalError, toRemoteError } from "../../objects/remote-error.ts";
import { ownStubs } from "../../objects/rpc-values.ts";
import type { Reference } from "./references.ts";
import { type SessionHost, SessionReferences } from "./session-references.ts";
import { describeThrown, thrownOf, type WireThrown } from "./wire-errors.ts";
import {
  MAX_MESSAGE_BYTES,
  type MessageKind,
  MessageReader,
  MESSAGES,
  RELEASE,
  writeMessage,
} from "./wire-message.ts";
import { type Decoded, decodeResult, decodeValue, reasonOf } from "./wire-values.ts";

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The call with which the session is opened. */
const FIRST_CALL = 0;

export class CallSession {
  readonly references: SessionReferences;
  readonly #isCaller: boolean;
  readonly #host: SessionHost;
  readonly #reader = new MessageReader();
  readonly #pending = new Map<number, Pending>();
  #stream: LinkStream | null = null;
  #nextCall = FIRST_CALL + 1;
  /** Calls of the other side that run here. */
  #serving = 0;
  #isOver = false;

  constructor(side: "caller" | "owner", host: SessionHost) {
    this.#isCaller = side === "caller";
    this.#host = host;
    this.references = new SessionReferences(this.#isCaller ? 1 : 2, host, {
      send: (kind, id, payload) => this.#send(kind, id, payload),
      call: (reference, path, args) => this.#call(reference, path, args),
      changed: () => this.#check(),
    });
  }

  /** Opens the session with a call. `open` sends the payload, and throws if it cannot. */
  open(payload: unknown, open: (payload: Uint8Array) => LinkStream): Promise<unknown> {
    const stream = open(this.references.encode(payload));
    const result = new Promise((resolve, reject) => this.#pending.set(FIRST_CALL, { resolve, reject }));
    this.#start(stream);
    this.references.startTunnels();
    return result;
  }

  /** Runs the call that opens the session, given its payload. */
  serve(payload: Uint8Array, stream: LinkStream, run: (call: unknown) => Promise<unknown>): void {
    this.#host.sessions.add(this);
    this.#start(stream);
    const stubs: object[] = [];
    const decoded = decodeValue(payload, this.references, stubs);
    this.#serve(FIRST_CALL, decoded, async (call) => {
      ownStubs(argumentsOf(call), stubs);
      try {
        return await run(call);
      } catch (error) {
        if (error instanceof InstanceElsewhereError) this.#refuse(error.node);
        throw error;
      }
    });
  }

  /** This node stops: what the other side holds of it works no more. */
  close(): void {
    this.#stream?.reset({ code: "broken", message: "the node stops" });
    this.#fail(connectionLost("the node stops"), "failed");
  }

  #start(stream: LinkStream): void {
    this.#stream = stream;
    stream.start({
      onData: (bytes) => this.#read(bytes),
      onEnd: () => {
        stream.end();
        this.#finish("ended");
      },
      onFailure: ({ code, message, details }) => {
        if (code === "elsewhere") this.#fail(new InstanceElsewhereError(nodeOf(details)), "not run");
        // A node that has not loaded its program yet.
        else if (code === "unknown") this.#fail(new NotSentError(message), "not run");
        else this.#fail(connectionLost(message), "failed");
      },
    });
  }

  /** The object is on another node: nothing was run. */
  #refuse(node: string | null): void {
    this.#stream?.reset({ code: "elsewhere", message: "the instance is on another node", details: { node } });
    this.#finish("not run");
  }

  #fail(error: Error, end: "failed" | "not run"): void {
    if (this.#isOver) return;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#finish(end);
    for (const { reject } of pending) reject(error);
  }

  #finish(end: "ended" | "failed" | "not run"): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#host.sessions.delete(this);
    this.references.finish(end);
  }

  #call(reference: Reference, path: readonly string[], args: readonly unknown[] | null): Promise<unknown> {
    if (this.#isOver) return Promise.reject(connectionLost("the session has ended"));
    return new Promise((resolve, reject) => {
      const payload = this.references.encode([reference, path, args]);
      const id = this.#nextCall++;
      this.#pending.set(id, { resolve, reject });
      this.#sendValue(MESSAGES.call, id, payload);
    });
  }

  /** Runs a call of the other side when its value is complete, and sends the outcome. */
  #serve(id: number, decoded: Decoded, run: (value: unknown) => Promise<unknown>): void {
    this.#serving += 1;
    const outcome =
      decoded.loading === null ? run(decoded.value) : decoded.loading.then(() => run(decoded.value));
    outcome
      .then(
        (value) => this.#answer(id, value),
        (error: unknown) => this.#answerThrown(id, error),
      )
      .finally(() => {
        this.#serving -= 1;
        this.#check();
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
      payload = this.references.encode(value);
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
      payload = this.references.encode(describeThrown(remote));
    } catch {
      payload = this.references.encode(describeThrown(new Error(String(remote))));
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
      this.#fail(connectionLost(error instanceof Error ? error.message : String(error)), "failed");
    }
  }

  #receive(kind: number, id: number, payload: Buffer): void {
    const { references } = this;
    switch (kind) {
      case MESSAGES.call:
        this.#serveCall(id, payload);
        return;
      case MESSAGES.result: {
        const pending = this.#take(id);
        if (pending !== undefined) decodeResult(payload, references).then(pending.resolve, pending.reject);
        break;
      }
      case MESSAGES.bytes:
        this.#take(id)?.resolve(new Uint8Array(payload));
        break;
      case MESSAGES.thrown:
        this.#take(id)?.reject(thrownOf(decodeValue(payload, references).value as WireThrown));
        break;
      case MESSAGES.release:
        references.released(id, payload[0] === RELEASE.disposed[0]);
        break;
      case MESSAGES.abort:
        references.aborted(id, reasonOf(decodeValue(payload, references).value));
        return;
      default:
        references.receiveFrame(id, kind, payload);
        return;
    }
    this.#check();
  }

  #serveCall(id: number, payload: Buffer): void {
    const stubs: object[] = [];
    this.#serve(id, decodeValue(payload, this.references, stubs), async (value) => {
      const [reference, path, args] = value as [Reference, string[], unknown[] | null];
      ownStubs(args, stubs);
      const target = this.references.offered(reference);
      if (target === undefined) throw new Error("RPC stub used after being disposed.");
      return target.send(path, args);
    });
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #sendValue(kind: MessageKind, id: number, payload: Uint8Array): void {
    this.#send(kind, id, payload);
    this.references.startTunnels();
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
    return this.#pending.size + this.#serving === 0 && this.references.isEmpty;
  }
}

/** As in the originals: the outcome of the call is not known. */
function connectionLost(reason: string): Error {
  const error = new Error("Network connection lost.", { cause: new Error(reason) });
  return finalError(Object.assign(error, { retryable: true }));
}

function nodeOf(details: unknown): string | null {
  const { node } = (details ?? {}) as { node?: unknown };
  return typeof node === "string" ? node : null;
}

/** The arguments of the call that opens a session; null for a request, whose stubs nobody has made. */
function argumentsOf(call: unknown): readonly unknown[] | null {
  const [, { args = null }] = call as [unknown, { readonly args?: readonly unknown[] | null }];
  return args;
}

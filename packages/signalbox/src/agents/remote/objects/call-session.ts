/**
 * One side of a session between two nodes: the calls of both directions. A session belongs to one call of a stub. It lives as long as the call runs, or
 * either side holds something of the other: a stub, a stream, a WebSocket.
 *
 *   new ─ open or serve → open ─ nothing is left (the caller ends it) → over
 *                          │ ▲  └ the stream is refused, or fails and there is no WebSocket → over
 *            the link breaks │ the caller continues on another stream
 *                          ▼ │
 *                         broken ─ the other node is gone, or the link stays away → over
 *
 * Invariants:
 * 1. Every call ends once: with a result, with what was thrown, or with the failure of the session. A break ends all calls at once, and releases what was
 *    offered and held: after that the session has WebSockets only.
 * 2. References of the caller's side are odd, those of the other side even; each belongs to the side that made it.
 * 3. The caller ends the session when it neither offers nor holds anything and no call runs. Releases were sent before, so the other side cannot
 *    need anything any more.
 * 4. After a failure, what this side offered is released as if the other side had disposed it, unless the call was not run at all.
 * 5. Messages arrive in order and once, over all streams of the session (`ItemChannel`). After a break each side says which WebSockets it has.
 */
import { randomBytes } from "node:crypto";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import { LinkError, type LinkFailure, type LinkStream } from "../../../engines/node-link/index.ts";
import type { NodeInc } from "../../../core/node-inc.ts";
import { NotSentError } from "../../placement/placement.ts";
import { finalError, toRemoteError } from "../../objects/remote-error.ts";
import { ownStubs } from "../../objects/rpc-values.ts";
import { UNKNOWN_SESSION } from "../sockets/hello.ts";
import { ItemChannel, readAttached, readWelcomed } from "../sockets/item-channel.ts";
import {
  decodeCount,
  encodeCount,
  encodeItem,
  encodeNumbers,
  type Item,
  ITEM_KINDS,
  readNumber,
} from "../sockets/socket-items.ts";
import { openOn } from "./open-stream.ts";
import type { Reference } from "./references.ts";
import { type SessionEnd, type SessionHost, SessionReferences } from "./session-references.ts";
import { describeThrown, thrownOf, type WireThrown } from "./wire-errors.ts";
import { MAX_MESSAGE_BYTES, type MessageKind, MESSAGES, RELEASE } from "./wire-message.ts";
import { type Decoded, decodeResult, decodeValue, reasonOf } from "./wire-values.ts";

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Of its arguments. */
  readonly signals: readonly Reference[];
}

const NO_SIGNALS: readonly Reference[] = [];

/** The call with which the session is opened. */
const FIRST_CALL = 0;
/** The name of the streams that continue sessions. Their payload: the session's id, and how many items the caller has. */
const CONTINUE = "objects.continue";
const ID_BYTES = 16;
/** The other side ends the session at once. */
const GONE: LinkFailure = { code: "gone", message: "the node stops" };
/** Streams that failed so cannot be continued. */
const FINAL: ReadonlySet<string> = new Set([GONE.code, UNKNOWN_SESSION.code, "defect", "cancelled"]);
/** Messages of WebSockets: the only ones after a break. */
const SOCKET_MESSAGES: ReadonlySet<number> = new Set([
  MESSAGES.text,
  MESSAGES.binary,
  MESSAGES.close,
  MESSAGES.handled,
  MESSAGES.moved,
  MESSAGES.alive,
]);

/** Continues sessions that other nodes have opened here. */
export function serveContinued(
  network: { serveStreams(name: string, serve: StreamService): void },
  { sessions }: Pick<SessionHost, "sessions">,
): void {
  network.serveStreams(CONTINUE, (payload, stream, from) => {
    const session = sessions.get(payload.toString("hex", 0, ID_BYTES));
    if (session === undefined || session.node !== from) stream.reset(UNKNOWN_SESSION);
    else session.resume(stream, decodeCount(payload.subarray(ID_BYTES)));
  });
}

type StreamService = (payload: Buffer, stream: LinkStream, from: string) => void;

export class CallSession {
  readonly node: NodeInc;
  readonly references: SessionReferences;
  readonly #isCaller: boolean;
  readonly #host: SessionHost;
  readonly #channel = new ItemChannel((item) => this.#onItem(item));
  readonly #pending = new Map<number, Pending>();
  #id: Buffer;
  #stream: LinkStream | null = null;
  #nextCall = FIRST_CALL + 1;
  /** Calls of the other side that run here. */
  #serving = 0;
  /** The first call has ended: only then there can be something to continue. */
  #isEstablished = false;
  /** A stream broke: the session has WebSockets only. */
  #hasBroken = false;
  #phase: "open" | "broken" | "over" = "open";

  /** `node` is the other side. */
  constructor(side: "caller" | "owner", host: SessionHost, node: NodeInc) {
    this.#isCaller = side === "caller";
    this.#host = host;
    this.node = node;
    this.#id = randomBytes(ID_BYTES);
    this.references = new SessionReferences(this.#isCaller ? 1 : 2, host, {
      send: (kind, id, payload) => this.#send(kind, id, payload),
      call: (reference, path, args) => this.#call(reference, path, args),
      changed: () => this.#check(),
    });
  }

  get isBroken(): boolean {
    return this.#phase === "broken";
  }

  /** Opens the session with a call, on a stream of this name. Throws `NotSentError` if nothing can be sent. */
  open(payload: unknown, name: string): Promise<unknown> {
    const stream = openOn(
      this.#host.network,
      this.node,
      name,
    )(Buffer.concat([this.#id, this.references.encode(payload)]));
    const result = new Promise((resolve, reject) =>
      // Those of the first call live as long as the session.
      this.#pending.set(FIRST_CALL, { resolve, reject, signals: NO_SIGNALS }),
    );
    this.#attach(stream, 0);
    this.references.startTunnels();
    return result;
  }

  /** Runs the call that opens the session, given its payload. */
  serve(payload: Buffer, stream: LinkStream, run: (call: unknown) => Promise<unknown>): void {
    this.#id = Buffer.from(payload.subarray(0, ID_BYTES));
    this.#host.sessions.set(this.#id.toString("hex"), this);
    this.#attach(stream, 0);
    const stubs: object[] = [];
    const decoded = decodeValue(payload.subarray(ID_BYTES), this.references, stubs);
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

  close(): void {
    this.#stream?.reset(GONE);
    this.#fail(connectionLost(GONE.message), "failed");
  }

  // ── Breaks ──

  /** The caller's side opens another stream, if there is a link. */
  continue(): void {
    if (!this.#isCaller || this.#phase !== "broken" || this.#stream !== null) return;
    const stream = this.#openAgain();
    if (stream === null) return;
    this.#stream = stream;
    readWelcomed(this.#channel, stream, {
      onWelcome: (payload) => {
        this.#channel.attach(stream, decodeCount(payload));
        this.#mended();
      },
      onRefused: (failure) => {
        if (this.#stream === stream) this.#stream = null;
        // Any other failure is one of the link, which may come back.
        if (failure === null || FINAL.has(failure.code)) this.lose();
      },
      onEnd: (failure) => this.#onStreamEnd(stream, failure),
    });
  }

  /** Null if there is no link, or it takes no more. */
  #openAgain(): LinkStream | null {
    try {
      const hello = Buffer.concat([this.#id, encodeCount(this.#channel.received)]);
      return this.#host.network.linkTo(this.node)?.openStream(CONTINUE, hello) ?? null;
    } catch (error) {
      if (error instanceof LinkError) return null;
      throw error;
    }
  }

  resume(stream: LinkStream, received: number): void {
    // The other side may have noticed the break first.
    if (this.#phase === "open") this.#break("the other node has opened another stream");
    try {
      const welcome = encodeItem(ITEM_KINDS.welcome, encodeCount(this.#channel.received));
      this.#attach(stream, received, welcome);
      this.#mended();
    } catch {
      // The caller claims to have received what was never sent.
      stream.reset(UNKNOWN_SESSION);
      this.lose();
    }
  }

  lose(): void {
    this.#stream?.reset();
    this.#fail(connectionLost("the other node is gone"), "failed");
  }

  #mended(): void {
    this.#phase = "open";
    this.#send(MESSAGES.alive, 0, encodeNumbers(...this.references.tunnelNumbers));
  }

  #break(reason: string): void {
    this.#phase = "broken";
    this.#hasBroken = true;
    this.#stream = null;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.references.finishCalls("failed");
    for (const { reject } of pending) reject(connectionLost(reason));
    this.#host.broken.add(this);
  }

  #attach(stream: LinkStream, received: number, first: readonly Buffer[] = []): void {
    this.#stream = stream;
    this.#channel.attach(stream, received, first);
    readAttached(this.#channel, stream, (failure) => this.#onStreamEnd(stream, failure));
  }

  #onStreamEnd(stream: LinkStream, failure: LinkFailure | null): void {
    if (!this.#channel.detach(stream)) return;
    if (failure === null) {
      stream.end();
      this.#finish("ended");
      return;
    }
    const { code, message, details } = failure;
    // Only a node says where objects are.
    const isNode = this.references.sharesObjects;
    if (isNode && code === "elsewhere") this.#fail(new InstanceElsewhereError(nodeOf(details)), "not run");
    // A node that has not loaded its program yet.
    else if (isNode && code === "unknown") this.#fail(new NotSentError(message), "not run");
    else if (this.#phase !== "over" && !FINAL.has(code) && this.#isEstablished && this.references.hasTunnels)
      this.#break(message);
    else this.#fail(connectionLost(message), "failed");
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

  #finish(end: SessionEnd): void {
    if (this.#isOver) return;
    this.#phase = "over";
    if (!this.#isCaller) this.#host.sessions.delete(this.#id.toString("hex"));
    this.references.finish(end);
    // What was sent before still leaves.
    this.#channel.close();
    this.#host.onOver?.();
  }

  get #isOver(): boolean {
    return this.#phase === "over";
  }

  #call(reference: Reference, path: readonly string[], args: readonly unknown[] | null): Promise<unknown> {
    if (this.#isOver || this.#hasBroken) return Promise.reject(connectionLost("the session has ended"));
    return new Promise((resolve, reject) => {
      const payload = this.references.encode([reference, path, args]);
      const id = this.#nextCall++;
      this.#pending.set(id, { resolve, reject, signals: this.references.newSignals });
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
    if (id === FIRST_CALL) this.#isEstablished = true;
    if (this.#isOver || this.#hasBroken) return;
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
    if (id === FIRST_CALL) this.#isEstablished = true;
    if (this.#isOver || this.#hasBroken) return;
    const remote = toRemoteError(error);
    let payload: Buffer;
    try {
      payload = this.references.encode(describeThrown(remote));
    } catch {
      payload = this.references.encode(describeThrown(new Error(String(remote))));
    }
    this.#sendValue(MESSAGES.thrown, id, payload);
  }

  #onItem({ kind, payload }: Item): void {
    // What was sent before a break may arrive after it.
    if (this.#isOver || (this.#hasBroken && !SOCKET_MESSAGES.has(kind))) return;
    this.#receive(kind, readNumber(payload, 0), payload.subarray(4));
  }

  #receive(kind: number, id: number, payload: Buffer): void {
    const { references } = this;
    switch (kind) {
      case MESSAGES.call:
        this.#serveCall(id, payload);
        return;
      case MESSAGES.result: {
        const pending = this.#take(id);
        if (pending !== undefined)
          references
            .answered(pending.signals, () => decodeResult(payload, references))
            .then(pending.resolve, pending.reject);
        break;
      }
      case MESSAGES.bytes: {
        const pending = this.#take(id);
        pending?.resolve(references.answered(pending.signals, () => new Uint8Array(payload)));
        break;
      }
      case MESSAGES.thrown: {
        const pending = this.#take(id);
        pending?.reject(
          references.answered(pending.signals, () =>
            thrownOf(decodeValue(payload, references).value as WireThrown),
          ),
        );
        break;
      }
      case MESSAGES.release:
        references.released(id, payload[0] === RELEASE.disposed[0]);
        break;
      case MESSAGES.abort:
        references.aborted(id, reasonOf(decodeValue(payload, references).value));
        return;
      case MESSAGES.alive:
        references.keepTunnels(new Set(numbersOf(payload)));
        break;
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
    if (id === FIRST_CALL) this.#isEstablished = true;
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #sendValue(kind: MessageKind, id: number, payload: Uint8Array): void {
    this.#send(kind, id, payload);
    this.references.startTunnels();
  }

  #send(kind: MessageKind, id: number, payload: Uint8Array): void {
    if (this.#isOver) return;
    // Copied: programs may change what they have sent.
    const bytes = Buffer.concat([encodeNumbers(id), payload]);
    this.#channel.send({ encode: () => encodeItem(kind, bytes) });
  }

  /** Invariant 3. Decided later: the code that gets a result may use what it holds at once. */
  #check(): void {
    if (!this.#isCaller || !this.#isUnused) return;
    setImmediate(() => {
      if (this.#isOver || !this.#isUnused) return;
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

function numbersOf(payload: Buffer): number[] {
  const numbers: number[] = [];
  for (let offset = 0; offset + 4 <= payload.length; offset += 4) numbers.push(payload.readUInt32LE(offset));
  return numbers;
}

/** The arguments of the call that opens a session; null for a request, which has no stubs. */
function argumentsOf(call: unknown): readonly unknown[] | null {
  const [, { args = null }] = call as [unknown, { readonly args?: readonly unknown[] | null }];
  return args;
}

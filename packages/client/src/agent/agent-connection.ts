/**
 * A live connection to one instance: its state, its methods, its messages. Composes the link (coming back), the handshake, the outbox
 * (what waits), the pending calls and the state mirror; holds no protocol or timer of its own.
 *
 * 1. Nothing is sent before the handshake is done; until then everything waits in the bounded outbox, in order.
 * 2. Nothing is sent twice: what was handed to a socket is gone from the outbox.
 * 3. After `close` (or a final close code) nothing is pending: every call has settled and the outbox is empty.
 * 4. `snapshot` is replaced, never changed; it is the same object as long as nothing changed.
 */
import { type IdentityFrame, parseServerFrame, type ServerFrame } from "@signalbox/protocol";
import { type AgentAddress, agentSocketUrl, agentUrl, checkAddress, randomId } from "./agent-address.ts";
import { AgentError } from "./agent-error.ts";
import type { AgentStub, ArgumentsOf, MethodName, ResultOf, StateOf, StreamName } from "./agent-shape.ts";
import { type BackoffPolicy, DEFAULT_BACKOFF } from "./backoff.ts";
import { CallStream } from "./call-stream.ts";
import { Emitter } from "./emitter.ts";
import { Handshake } from "./handshake.ts";
import { Link } from "./link.ts";
import { DEFAULT_OUTBOX_BOUND, Outbox, type OutboxBound, type OutboxEntry } from "./outbox.ts";
import { type CallOptions, PendingCalls } from "./pending-calls.ts";
import { openSocket, type OpenSocket } from "./socket.ts";
import { StateMirror } from "./state-mirror.ts";
import { createStub } from "./stub.ts";

/** `idle`: not started. `connecting`: on the way. `open`: in use. `waiting`: a pause before the next attempt. `closed`: for good. */
export type ConnectionStatus = "idle" | "connecting" | "open" | "waiting" | "closed";

export interface AgentConnectionOptions extends AgentAddress {
  /** A token with `agents.read` or `agents.edit`; a function is asked before every attempt, so that it can renew the token. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>);
  /** For `call`. Default 30,000; 0 means no limit. */
  readonly callTimeoutMs?: number;
  /** Default 10,000. */
  readonly connectTimeoutMs?: number;
  readonly backoff?: Partial<BackoffPolicy>;
  /** What may wait while there is no connection. */
  readonly outbox?: Partial<OutboxBound>;
  /** Replaces the runtime's WebSocket, e.g. to go through a proxy. */
  readonly openSocket?: OpenSocket;
}

export interface ConnectionSnapshot<State> {
  readonly status: ConnectionStatus;
  /** Undefined until the server told it. */
  readonly state: State | undefined;
  /** Who answered: the agent's and the instance's name as the server knows them. */
  readonly identity: { readonly agent: string; readonly name: string } | null;
  /** Why the connection is waiting or closed. */
  readonly error: Error | null;
}

// A type, not an interface: only a type's members satisfy the emitter's bound.
export type ConnectionEvents<State> = {
  /** The state changed: told by the server, changed by this side, or taken back after a refusal (then `server`). */
  state: (state: State, source: "server" | "client") => void;
  /** The server refused a state update; the state was already taken back. */
  stateError: (message: string) => void;
  status: (status: ConnectionStatus) => void;
  /** A text of the agent's own code. */
  message: (text: string) => void;
  /** Anything in the snapshot changed. */
  change: () => void;
};

/** Shorter-lived connections count as failed attempts: a server that accepts and drops at once must not be hammered. */
const STABLE_AFTER_MS = 5000;

/** A browser says when the machine is online again; Node has no such event. */
const page = globalThis as {
  addEventListener?: (type: "online", listener: () => void) => void;
  removeEventListener?: (type: "online", listener: () => void) => void;
};

export class AgentConnection<Agent = unknown> implements Disposable {
  /** Chosen by this side, the same over reconnects. */
  readonly id = randomId();
  /** The agent's methods as functions: `connection.stub.getEvents(20)`. */
  readonly stub: AgentStub<Agent>;
  readonly #options: AgentConnectionOptions;
  readonly #emitter = new Emitter<ConnectionEvents<StateOf<Agent>>>();
  readonly #mirror = new StateMirror<StateOf<Agent>>();
  readonly #outbox: Outbox;
  readonly #calls: PendingCalls;
  readonly #link: Link;
  readonly #hurry = () => this.#link.hurry();
  #handshake: Handshake | null = null;
  #snapshot: ConnectionSnapshot<StateOf<Agent>> = {
    status: "idle",
    state: undefined,
    identity: null,
    error: null,
  };

  /** Opens nothing yet; throws a TypeError for an address that cannot be. */
  constructor(options: AgentConnectionOptions) {
    checkAddress(options);
    this.#options = options;
    this.#outbox = new Outbox({ ...DEFAULT_OUTBOX_BOUND, ...options.outbox });
    this.#calls = new PendingCalls({
      carry: (entry) => this.#carry(entry),
      withdraw: (entry) => void this.#outbox.withdraw(entry),
    });
    this.stub = createStub<Agent>((method, args) => this.#call(method, args, {}));
    this.#link = new Link(
      {
        backoff: { ...DEFAULT_BACKOFF, ...options.backoff },
        connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
        stableAfterMs: STABLE_AFTER_MS,
      },
      {
        open: async () => {
          const { token, openSocket: open = openSocket } = this.#options;
          const url = agentSocketUrl(this.#options, this.id);
          return open(url, typeof token === "function" ? await token() : token);
        },
        onUp: () => (this.#handshake = new Handshake(() => this.#ready())),
        onText: (text) => this.#receive(text),
        onDown: (error) => this.#down(error),
        onConnecting: () => this.#update({ status: "connecting" }),
        onWaiting: (error) => this.#update({ status: "waiting", error: toError(error) }),
        onEnd: (error) => this.#end(error),
      },
    );
  }

  get snapshot(): ConnectionSnapshot<StateOf<Agent>> {
    return this.#snapshot;
  }

  get status(): ConnectionStatus {
    return this.#snapshot.status;
  }

  get state(): StateOf<Agent> | undefined {
    return this.#snapshot.state;
  }

  /** The instance's HTTP address, for requests to its `onRequest`. */
  get httpUrl(): URL {
    return agentUrl(this.#options);
  }

  /** Starts connecting; does nothing when already started. Also starts anew after `close` and after a final close code. */
  open(): this {
    // A page rendered on a server knows its origin only in the browser, so a missing one is an error here, not earlier.
    agentUrl(this.#options);
    if (!this.#link.isStarted) page.addEventListener?.("online", this.#hurry);
    this.#link.start();
    return this;
  }

  /** Closes for good: pending calls fail, what waits is dropped. */
  close(code = 1000, reason = ""): void {
    if (this.#link.isStarted) this.#link.stop(code, reason);
    else if (this.status === "idle")
      this.#end(new AgentError("final", "the connection was closed by this side", code));
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Ends a pause between attempts early. */
  reconnectNow(): void {
    this.#hurry();
  }

  /** Resolves when the connection is open and the state is known; rejects when it is closed for good or the signal aborts. */
  async ready(signal?: AbortSignal): Promise<this> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = () => {
      if (this.status === "open") resolve();
      else if (this.status === "closed") reject(this.#snapshot.error ?? new Error("closed"));
    };
    const onAbort = () => reject(signal?.reason);
    const stopListening = this.#emitter.on("status", look);
    signal?.addEventListener("abort", onAbort, { once: true });
    look();
    try {
      await promise;
    } finally {
      stopListening();
      signal?.removeEventListener("abort", onAbort);
    }
    return this;
  }

  on<Name extends keyof ConnectionEvents<StateOf<Agent>>>(
    name: Name,
    listener: ConnectionEvents<StateOf<Agent>>[Name],
  ): () => void {
    return this.#emitter.on(name, listener);
  }

  /** Replaces the state, here at once; taken back when the server refuses. Throws when it cannot be sent or kept. */
  setState(state: StateOf<Agent>): void {
    if (state === undefined) throw new TypeError("the state must not be undefined; null is possible");
    const text = JSON.stringify({ type: "cf_agent_state", state });
    let isSent = false;
    this.#carry({
      kind: "state",
      text,
      onSent: () => {
        isSent = true;
        this.#mirror.sent(state);
      },
    });
    if (!isSent) this.#mirror.keep(state);
    this.#showState("client");
  }

  /** Calls a method that answers once. Never sent twice: when it fails with reason `closed` or `timeout`, it may have run. */
  call<Name extends MethodName<Agent>>(
    method: Name,
    args: ArgumentsOf<Agent, Name>,
    options: CallOptions = {},
  ): Promise<ResultOf<Agent, Name>> {
    return this.#call(method, args as readonly unknown[], options) as Promise<ResultOf<Agent, Name>>;
  }

  /** Calls a method that answers piece by piece. No time limit unless one is given. */
  stream<Piece = unknown, Result = unknown, Name extends StreamName<Agent> = StreamName<Agent>>(
    method: Name,
    args: ArgumentsOf<Agent, Name>,
    options: CallOptions = {},
  ): CallStream<Piece, Result> {
    let forget: (() => void) | undefined;
    const stream = new CallStream<Piece, Result>(() => forget?.());
    forget = this.#calls.start(method, args as readonly unknown[], options, {
      push: (piece) => stream.push(piece as Piece),
      finish: (result) => stream.finish(result as Result),
      fail: (error) => stream.fail(error),
    });
    return stream;
  }

  /** Sends a text to the agent's `onMessage`. Throws when it cannot be sent or kept. */
  send(text: string): void {
    this.#carry({ kind: "message", text });
  }

  #call(method: string, args: readonly unknown[], options: CallOptions): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timeoutMs = options.timeoutMs ?? this.#options.callTimeoutMs ?? 30_000;
    this.#calls.start(method, args, { ...options, timeoutMs }, { push() {}, finish: resolve, fail: reject });
    return promise;
  }

  /** Sends now, or keeps for later; throws when neither is possible. */
  #carry(entry: OutboxEntry): void {
    if (this.status === "closed")
      throw this.#snapshot.error ?? new AgentError("final", "the connection is closed");
    const maxCharacters = this.#options.outbox?.maxCharacters ?? DEFAULT_OUTBOX_BOUND.maxCharacters;
    const { backlog } = this.#link;
    if (backlog > 0 && backlog + entry.text.length > maxCharacters) {
      throw new AgentError("buffer_full", `the network has not taken the last ${backlog} bytes yet`);
    }
    if (this.status === "open" && this.#link.send(entry.text)) entry.onSent?.();
    else this.#outbox.add(entry);
  }

  #ready(): void {
    // Before anyone is told: what waited goes out ahead of what listeners send now.
    this.#flush();
    this.#update({ status: "open", error: null });
  }

  #flush(): void {
    for (let entry = this.#outbox.take(); entry !== undefined; entry = this.#outbox.take()) {
      if (!this.#link.send(entry.text)) return this.#outbox.putBack(entry);
      entry.onSent?.();
    }
  }

  #receive(text: string): void {
    const frame = parseServerFrame(text);
    if (frame === null) return this.#emitter.emit("message", text);
    this.#apply(frame);
    this.#handshake?.see(frame);
  }

  #apply(frame: ServerFrame): void {
    switch (frame.type) {
      case "cf_agent_identity":
        return this.#identify(frame);
      case "cf_agent_state":
        this.#mirror.tell(frame.state as StateOf<Agent>);
        return this.#showState("server");
      case "cf_agent_state_error":
        this.#mirror.refuse();
        this.#showState("server");
        return this.#emitter.emit("stateError", frame.error);
      case "rpc":
        return this.#calls.answer(frame);
      default:
        frame satisfies never;
    }
  }

  #identify({ agent, name }: IdentityFrame): void {
    const { identity } = this.#snapshot;
    if (identity?.agent !== agent || identity.name !== name) this.#update({ identity: { agent, name } });
  }

  #showState(source: "server" | "client"): void {
    const state = this.#mirror.current;
    if (Object.is(state, this.#snapshot.state)) return;
    this.#update({ state });
    if (state !== undefined) this.#emitter.emit("state", state, source);
  }

  #down(error: AgentError): void {
    this.#handshake?.abandon();
    this.#handshake = null;
    this.#mirror.disconnect(this.#outbox.has("state"));
    this.#calls.failSent(error);
  }

  #end(error: AgentError): void {
    page.removeEventListener?.("online", this.#hurry);
    this.#outbox.clear();
    this.#mirror.disconnect(false);
    this.#update({ status: "closed", error });
    this.#showState("server");
    this.#calls.failAll(error);
  }

  #update(change: Partial<ConnectionSnapshot<StateOf<Agent>>>): void {
    const { status } = this.#snapshot;
    this.#snapshot = { ...this.#snapshot, ...change };
    if (this.#snapshot.status !== status) this.#emitter.emit("status", this.#snapshot.status);
    this.#emitter.emit("change");
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

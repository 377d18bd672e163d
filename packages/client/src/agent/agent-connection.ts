/**
 * A connection to one instance: its state, methods and messages. Composes the link (reconnection), the handshake, the outbox, the
 * pending calls and the state mirror; contains no protocol code and no timers.
 *
 * 1. No frame is sent before the handshake completes; until then frames wait in order in the bounded outbox.
 * 2. No frame is sent twice: a frame that is passed to a socket is removed from the outbox.
 * 3. After `close` or a final close code, every call has settled and the outbox is empty.
 * 4. `snapshot` is immutable; every change replaces it.
 * See docs/decisions/0040.
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

/** `idle`: not started. `connecting`: an attempt is in progress. `open`: connected. `waiting`: a delay before the next attempt. `closed`: no further attempts. */
export type ConnectionStatus = "idle" | "connecting" | "open" | "waiting" | "closed";

export interface AgentConnectionOptions extends AgentAddress {
  /** A token with `agents.read` or `agents.edit`. A function is called before every attempt and can return a new token. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>);
  /** Time limit of `call`. Default 30,000; 0: no limit. */
  readonly callTimeoutMs?: number;
  /** Default 10,000. */
  readonly connectTimeoutMs?: number;
  readonly backoff?: Partial<BackoffPolicy>;
  /** Limit of the frames that wait while there is no connection. */
  readonly outbox?: Partial<OutboxBound>;
  /** Replaces the runtime's WebSocket, e.g. to use a proxy. */
  readonly openSocket?: OpenSocket;
}

export interface ConnectionSnapshot<State> {
  readonly status: ConnectionStatus;
  /** Undefined until the server has sent the state. */
  readonly state: State | undefined;
  /** The names of agent and instance, as sent by the server. */
  readonly identity: { readonly agent: string; readonly name: string } | null;
  /** The reason for `waiting` or `closed`. */
  readonly error: Error | null;
}

// A type, because an interface does not satisfy the emitter's index signature.
export type ConnectionEvents<State> = {
  /** The state changed. Source `server`: received from the server or reverted after a rejection; `client`: changed by this client. */
  state: (state: State, source: "server" | "client") => void;
  /** The server rejected a state update; the state is already reverted. */
  stateError: (message: string) => void;
  status: (status: ConnectionStatus) => void;
  /** A message of the agent. */
  message: (text: string) => void;
  /** The snapshot changed. */
  change: () => void;
};

/** A connection that ends earlier counts as a failed attempt, so that the delay grows if a server accepts and closes at once. */
const STABLE_AFTER_MS = 5000;

/** Browsers dispatch `online`; Node has no such event. */
const page = globalThis as {
  addEventListener?: (type: "online", listener: () => void) => void;
  removeEventListener?: (type: "online", listener: () => void) => void;
};

export class AgentConnection<Agent = unknown> implements Disposable {
  /** Chosen by the client; does not change on reconnect. */
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

  /** Opens no socket. Throws a TypeError for an invalid address. */
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

  /** The HTTP address of the instance, for requests to its `onRequest`. */
  get httpUrl(): URL {
    return agentUrl(this.#options);
  }

  /** Connects, also after `close` or a final close code. Has no effect if already started. */
  open(): this {
    // Checked here and not in the constructor: server-side rendering constructs connections without a page origin.
    agentUrl(this.#options);
    if (!this.#link.isStarted) page.addEventListener?.("online", this.#hurry);
    this.#link.start();
    return this;
  }

  /** Closes without reconnecting. Pending calls fail; waiting frames are discarded. */
  close(code = 1000, reason = ""): void {
    if (this.#link.isStarted) this.#link.stop(code, reason);
    else if (this.status === "idle")
      this.#end(new AgentError("final", "the connection was closed by the client", code));
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Starts the next attempt now if the connection is waiting. */
  reconnectNow(): void {
    this.#hurry();
  }

  /** Resolves when the connection is open and the state is known. Rejects when the status becomes `closed` or the signal aborts. */
  async ready(signal?: AbortSignal): Promise<this> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = () => {
      if (this.status === "open") resolve();
      else if (this.status === "closed") reject(this.#snapshot.error ?? new Error("closed"));
    };
    const onAbort = () => reject(signal?.reason);
    const stopListening = this.#emitter.on("status", check);
    signal?.addEventListener("abort", onAbort, { once: true });
    check();
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

  /** Replaces the state locally and sends it; reverted if the server rejects it. Throws if the update can be neither sent nor queued. */
  setState(state: StateOf<Agent>): void {
    if (state === undefined) throw new TypeError("the state must not be undefined; null is allowed");
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

  /** Calls a method with one result. The request is never sent twice; after reason `closed` or `timeout` the method may have run. */
  call<Name extends MethodName<Agent>>(
    method: Name,
    args: ArgumentsOf<Agent, Name>,
    options: CallOptions = {},
  ): Promise<ResultOf<Agent, Name>> {
    return this.#call(method, args as readonly unknown[], options) as Promise<ResultOf<Agent, Name>>;
  }

  /** Calls a streaming method. No time limit by default. */
  stream<Chunk = unknown, Result = unknown, Name extends StreamName<Agent> = StreamName<Agent>>(
    method: Name,
    args: ArgumentsOf<Agent, Name>,
    options: CallOptions = {},
  ): CallStream<Chunk, Result> {
    let forget: (() => void) | undefined;
    const stream = new CallStream<Chunk, Result>(() => forget?.());
    forget = this.#calls.start(method, args as readonly unknown[], options, {
      push: (chunk) => stream.push(chunk as Chunk),
      finish: (result) => stream.finish(result as Result),
      fail: (error) => stream.fail(error),
    });
    return stream;
  }

  /** Sends a message to the agent's `onMessage`. Throws if the message can be neither sent nor queued. */
  send(text: string): void {
    this.#carry({ kind: "message", text });
  }

  #call(method: string, args: readonly unknown[], options: CallOptions): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timeoutMs = options.timeoutMs ?? this.#options.callTimeoutMs ?? 30_000;
    this.#calls.start(method, args, { ...options, timeoutMs }, { push() {}, finish: resolve, fail: reject });
    return promise;
  }

  /** Sends or queues an entry. Throws if neither is possible. */
  #carry(entry: OutboxEntry): void {
    if (this.status === "closed")
      throw this.#snapshot.error ?? new AgentError("final", "the connection is closed");
    const maxCharacters = this.#options.outbox?.maxCharacters ?? DEFAULT_OUTBOX_BOUND.maxCharacters;
    const { backlog } = this.#link;
    if (backlog > 0 && backlog + entry.text.length > maxCharacters) {
      throw new AgentError("buffer_full", `${backlog} bytes are waiting in the socket's buffer`);
    }
    if (this.status === "open" && this.#link.send(entry.text)) entry.onSent?.();
    else this.#outbox.add(entry);
  }

  #ready(): void {
    // Before listeners run: waiting frames precede frames that listeners send.
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
        this.#mirror.receive(frame.state as StateOf<Agent>);
        return this.#showState("server");
      case "cf_agent_state_error":
        this.#mirror.refuse();
        this.#showState("server");
        return this.#emitter.emit("stateError", frame.error);
      case "rpc":
        return this.#calls.receive(frame);
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

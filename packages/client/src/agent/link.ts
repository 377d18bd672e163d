/**
 * A WebSocket that reconnects: opens, detects the end, waits, opens again. Does not interpret frames.
 *
 *   idle ──start──► preparing ──► connecting ──► up ──► waiting ──► preparing …
 *     ▲                 └────────────┴──────────┴─────────┴── stop, or a final close code ──► idle
 *
 * 1. At most one socket is live; events of other sockets are ignored.
 * 2. A timer belongs to a state and is cleared when the link leaves the state.
 * 3. `onDown` is called exactly once for each `onUp`; `onEnd` exactly once for each `start`.
 * 4. Close codes 1008 and 4000–4999 end the link; every other close leads to `waiting`.
 */
import { isFinalCloseCode } from "@signalbox/protocol";
import { AgentError } from "./agent-error.ts";
import { type BackoffPolicy, fullJitterDelay } from "./backoff.ts";
import type { Socket } from "./socket.ts";

/** `WebSocket.OPEN`, which is missing in some typings. */
const OPEN = 1;

export interface LinkOptions {
  readonly backoff: BackoffPolicy;
  /** Time limit of an attempt. */
  readonly connectTimeoutMs: number;
  /** A connection that lasts this long resets the delay to its minimum. */
  readonly stableAfterMs: number;
}

export interface LinkEvents {
  /** Opens a socket. Called for every attempt, so that the token can be renewed. */
  open(): Promise<Socket>;
  onUp(): void;
  onText(text: string): void;
  onDown(error: AgentError): void;
  /** The link waits before the next attempt; `error` is the reason. */
  onWaiting(error: unknown): void;
  onConnecting(): void;
  onEnd(error: AgentError): void;
}

type LinkState =
  | { readonly kind: "idle" }
  | { readonly kind: "preparing" }
  | { readonly kind: "connecting"; readonly socket: Socket; readonly timer: Timer }
  | { readonly kind: "up"; readonly socket: Socket; readonly sinceMs: number }
  | { readonly kind: "waiting"; readonly timer: Timer };

type Timer = ReturnType<typeof setTimeout>;

export class Link {
  readonly #options: LinkOptions;
  readonly #events: LinkEvents;
  #state: LinkState = { kind: "idle" };
  #attempt = 0;

  constructor(options: LinkOptions, events: LinkEvents) {
    this.#options = options;
    this.#events = events;
  }

  get isStarted(): boolean {
    return this.#state.kind !== "idle";
  }

  /** Has no effect if already started. */
  start(): void {
    if (this.isStarted) return;
    this.#attempt = 0;
    this.#connect();
  }

  /** Closes without reconnecting, until `start`. */
  stop(code: number, reason: string): void {
    if (!this.isStarted) return;
    // First, because an invalid code or reason throws here, and the state must then be unchanged.
    if (this.#state.kind === "connecting" || this.#state.kind === "up")
      this.#state.socket.close(code, reason);
    const previous = this.#leave({ kind: "idle" });
    const error = new AgentError("final", "the connection was closed by the client", code);
    if (previous.kind === "up") this.#events.onDown(error);
    this.#events.onEnd(error);
  }

  /** Starts the next attempt now if the link is waiting, e.g. because the machine is online again. */
  hurry(): void {
    if (this.#state.kind === "waiting") this.#connect();
  }

  /** Returns false if the text was not sent. */
  send(text: string): boolean {
    if (this.#state.kind !== "up" || this.#state.socket.readyState !== OPEN) return false;
    this.#state.socket.send(text);
    return true;
  }

  /** Bytes in the socket's send buffer. */
  get backlog(): number {
    return this.#state.kind === "up" ? this.#state.socket.bufferedAmount : 0;
  }

  #connect(): void {
    const preparing: LinkState = { kind: "preparing" };
    this.#leave(preparing);
    this.#attempt++;
    this.#events.onConnecting();
    this.#events.open().then(
      (socket) => {
        // The link was stopped, and possibly restarted, during the attempt; this socket is obsolete.
        if (this.#state === preparing) this.#watch(socket);
        else socket.close();
      },
      (error: unknown) => {
        if (this.#state === preparing) this.#wait(error);
      },
    );
  }

  #watch(socket: Socket): void {
    const timer = setTimeout(() => {
      this.#wait(new AgentError("closed", `no connection within ${this.#options.connectTimeoutMs} ms`));
      socket.close();
    }, this.#options.connectTimeoutMs);
    this.#leave({ kind: "connecting", socket, timer });
    const isLive = () =>
      (this.#state.kind === "connecting" || this.#state.kind === "up") && this.#state.socket === socket;
    socket.addEventListener("open", () => {
      if (!isLive()) return;
      this.#leave({ kind: "up", socket, sinceMs: performance.now() });
      this.#events.onUp();
    });
    socket.addEventListener("message", ({ data }) => {
      if (isLive() && typeof data === "string") this.#events.onText(data);
    });
    // `close` reports the same; without a listener some runtimes treat the error as uncaught.
    socket.addEventListener("error", () => {});
    socket.addEventListener("close", ({ code, reason }) => {
      if (isLive()) this.#closed(code, reason);
    });
  }

  #closed(code: number, reason: string): void {
    const text = `the connection was closed with ${code}${reason === "" ? "" : ` (${reason})`}`;
    const isFinal = isFinalCloseCode(code);
    const error = new AgentError(isFinal ? "final" : "closed", text, code);
    if (isFinal) {
      const previous = this.#leave({ kind: "idle" });
      if (previous.kind === "up") this.#events.onDown(error);
      this.#events.onEnd(error);
    } else {
      this.#wait(error);
    }
  }

  #wait(error: unknown): void {
    const previous = this.#state;
    if (previous.kind === "up" && performance.now() - previous.sinceMs >= this.#options.stableAfterMs) {
      this.#attempt = 0;
    }
    const delay = fullJitterDelay(Math.max(1, this.#attempt), this.#options.backoff);
    this.#leave({ kind: "waiting", timer: setTimeout(() => this.#connect(), delay) });
    if (previous.kind === "up") this.#events.onDown(error as AgentError);
    this.#events.onWaiting(error);
  }

  #leave(next: LinkState): LinkState {
    const previous = this.#state;
    if (previous.kind === "connecting" || previous.kind === "waiting") clearTimeout(previous.timer);
    this.#state = next;
    return previous;
  }
}

/**
 * A WebSocket that ends at this node, from the handshake to its close: pings, the limit of messages that wait, the credential. Its messages go
 * to a target: the instance, wherever that runs.
 *
 *   early (a reader of an instance that does not exist) → joined ─ closed → gone
 */
import type { RawData, WebSocket } from "ws";
import type { Authenticator, Principal } from "../../accounts/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { closeCodeOf, toSignalboxError } from "../../http/render-error.ts";
import type { LocalSocket } from "../../engines/http-server/index.ts";
import type { EarlyReader } from "./early-reader.ts";

/** Messages of one connection that may wait for their turns; beyond it the socket is not read until half of them have ended. */
const MAX_UNANSWERED = 256;
/** How long a peer whose credential has ended may take to answer the close frame. */
const ENDED_GRACE_MS = 500;

/** Where the messages of a socket go. */
export interface SocketTarget {
  /** Resolves when the message has been handled. */
  receive(message: string | Buffer): Promise<unknown>;
  /** The credential has ended: no message takes effect any more, including those that wait. */
  loseCredential(): void;
  leave(code: number, reason: string): void;
}

export interface SocketCredential {
  readonly principal: Principal | null;
  readonly authenticator: Authenticator;
}

export class ArrivedSocket {
  readonly #socket: LocalSocket;
  readonly #credential: SocketCredential;
  readonly #onClose: () => void;
  #target: SocketTarget | null = null;
  #early: EarlyReader | null = null;
  #cancelArrival: (() => void) | undefined;
  #unanswered = 0;
  /** Set by the last message that had to wait until the credential could be checked. */
  #fresh: Promise<void> | null = null;

  constructor(webSocket: WebSocket, socket: LocalSocket, credential: SocketCredential, onClose: () => void) {
    this.#socket = socket;
    this.#credential = credential;
    this.#onClose = onClose;
    const { authenticator, principal } = credential;
    const stopWatching =
      principal === null ? undefined : authenticator.watch(principal, () => this.#loseCredential());
    webSocket.on("pong", () => {
      socket.isAlive = true;
    });
    // `ws` closes the socket itself after a protocol error; without a listener the error would be uncaught.
    webSocket.on("error", () => undefined);
    webSocket.on("message", (data: RawData, isBinary: boolean) => this.#receive(data as Buffer, isBinary));
    webSocket.on("close", (code: number, reason: Buffer) => {
      stopWatching?.();
      this.#cancelArrival?.();
      this.#onClose();
      const leave = () => this.#target?.leave(code, reason.toString("utf8"));
      // Messages that arrived before the close come first.
      if (this.#fresh === null) leave();
      else void this.#fresh.then(leave, leave);
    });
  }

  /** The instance does not exist: the reader waits for it. `onArrival` returns a function that cancels. */
  wait(early: EarlyReader, onArrival: () => () => void): void {
    this.#early = early;
    early.greet();
    this.#cancelArrival = onArrival();
  }

  join(target: SocketTarget): void {
    this.#early = null;
    this.#cancelArrival = undefined;
    this.#target = target;
  }

  #receive(data: Buffer, isBinary: boolean): void {
    const socket = this.#socket;
    if (socket.isClosed) return;
    socket.isAlive = true;
    const message = isBinary ? data : data.toString("utf8");
    if (this.#early !== null) {
      this.#early.refuse(message);
      return;
    }
    this.#unanswered += 1;
    if (this.#unanswered === MAX_UNANSWERED) socket.pause();
    const { authenticator, principal } = this.#credential;
    const fresh = principal === null ? null : authenticator.whenFresh();
    if (fresh !== null) this.#fresh = fresh;
    const taken =
      fresh === null
        ? this.#pass(message)
        : fresh.then(
            () => this.#pass(message),
            (error: unknown) => this.#fail(error),
          );
    taken.then(this.#answered, this.#answered);
  }

  #pass(message: string | Buffer): Promise<unknown> {
    return this.#target === null ? Promise.resolve() : this.#target.receive(message);
  }

  readonly #answered = (): void => {
    this.#unanswered -= 1;
    if (this.#unanswered === MAX_UNANSWERED / 2) this.#socket.resume();
  };

  #fail(error: unknown): void {
    const { code, reason } = closeCodeOf(toSignalboxError(error));
    this.#socket.close(code, reason);
  }

  #loseCredential(): void {
    this.#target?.loseCredential();
    const { code, reason } = closeCodeOf(new SignalboxError("unauthenticated"));
    this.#socket.closeWithin(code, reason, ENDED_GRACE_MS);
  }
}

/**
 * One realtime session: passes messages between a client and a provider.
 *
 * States:  open ──► ended
 *   ended: both sockets are closing, the usage is settled and the row is recorded. No message is passed on any more.
 *
 * Invariants:
 * 1. Messages leave in the order in which they arrived, whole and unchanged.
 * 2. A side that reads slowly stops the reading of the other side: at most `HIGH_WATER_BYTES` and one message wait for it.
 * 3. `end` runs once, whichever side, limit or timer comes first.
 */
import type { SignalboxError } from "@signalbox/protocol";
import { WebSocket } from "ws";
import type { CallFigures } from "../limits/call-figures.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { SessionDialect } from "./message.ts";
import type { SessionMeter } from "./session-meter.ts";
import type { SessionTranscript } from "./session-transcript.ts";

/** Who or what ended the session; a label of a metric. */
export type EndCause =
  | "client"
  | "provider"
  | "refused"
  | "credential"
  | "gateway"
  | "idle"
  | "time"
  | "stalled"
  | "memory"
  | "stopping";

export interface SessionEnd {
  readonly cause: EndCause;
  /** The close code that the client got or sent; 1006 for a connection that broke. */
  readonly code: number;
  readonly figures: CallFigures;
  readonly error: SignalboxError | null;
}

export interface SessionParts {
  readonly client: WebSocket;
  readonly provider: WebSocket;
  readonly dialect: SessionDialect;
  readonly meter: SessionMeter;
  readonly transcript: SessionTranscript;
  readonly gateway: Pick<Gateway, "accountId" | "id">;
  /** Bytes that the client's socket has received. */
  readonly receivedBytes: () => number;
  readonly onEnd: (session: Session, end: SessionEnd) => void;
}

const HIGH_WATER_BYTES = 1024 * 1024;
const LOW_WATER_BYTES = 256 * 1024;
/** RFC 6455, section 5.5: a control frame has 125 bytes, two of which are the code. */
const MAX_REASON_BYTES = 123;
const GOING_AWAY = 1001;
const NO_STATUS = 1005;
const ABNORMAL = 1006;
const POLICY = 1008;
const TOO_BIG = 1009;
const BAD_GATEWAY = 1014;

export class Session {
  readonly startedAt = performance.now();
  lastMessageAt = this.startedAt;
  /** Since when a side does not read; null while both do. */
  stalledSince: number | null = null;
  /** A pong or message of the client has arrived since the last ping. */
  isAlive = true;
  readonly #parts: SessionParts;
  #isEnded = false;
  /** Bytes that the client's socket had received when its last message was whole. */
  #wholeBytes: number;
  #stopWatching: (() => void) | null = null;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#wholeBytes = parts.receivedBytes();
    const { client, provider } = parts;
    client.on("message", (data: Buffer, isBinary: boolean) => this.#fromClient(data, isBinary));
    provider.on("message", (data: Buffer, isBinary: boolean) => this.#fromProvider(data, isBinary));
    client.on("pong", () => (this.isAlive = true));
    client.on("close", (code: number, reason: Buffer) => this.#closed("client", code, reason));
    provider.on("close", (code: number, reason: Buffer) => this.#closed("provider", code, reason));
    // `ws` closes the socket itself after a protocol error, and the close event follows.
    client.on("error", (error) => this.#broke("client", error));
    provider.on("error", (error) => this.#broke("provider", error));
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Memory that the session holds: messages on their way out, and parts of messages that have not arrived whole. */
  get bufferedBytes(): number {
    const { client, provider, receivedBytes } = this.#parts;
    return client.bufferedAmount + provider.bufferedAmount + receivedBytes() - this.#wholeBytes;
  }

  belongsTo({ accountId, id }: Pick<Gateway, "accountId" | "id">): boolean {
    const { gateway } = this.#parts;
    return gateway.accountId === accountId && gateway.id === id;
  }

  /** `stop` is called when the session ends; at once if it has ended. */
  whileOpen(stop: () => void): void {
    if (this.#isEnded) stop();
    else this.#stopWatching = stop;
  }

  ping(): void {
    this.isAlive = false;
    this.#parts.client.ping();
  }

  /** Ends the session from here. The client is told why, the provider only that the client is gone. */
  end(cause: EndCause, code: number, reason: string, error: SignalboxError | null = null): void {
    if (this.#isEnded) return;
    const { client, provider } = this.#parts;
    close(client, code, reason);
    close(provider, GOING_AWAY, "");
    this.#settle(cause, code, error);
  }

  /** For a client that does not answer: a close frame would not reach it. */
  drop(cause: EndCause): void {
    if (this.#isEnded) return;
    this.#parts.client.terminate();
    close(this.#parts.provider, GOING_AWAY, "");
    this.#settle(cause, ABNORMAL, null);
  }

  #fromClient(data: Buffer, isBinary: boolean): void {
    if (this.#isEnded) return;
    this.isAlive = true;
    this.#wholeBytes = this.#parts.receivedBytes();
    this.lastMessageAt = performance.now();
    const { client, provider, dialect, meter, transcript } = this.#parts;
    const { refused, isKept } = meter.fromClient(data);
    if (refused === null) {
      transcript.sent(data, isKept);
      this.#pass(client, provider, data, isBinary);
      return;
    }
    const { error, eventId } = refused;
    const { code, status, message } = error;
    const text = dialect.toError?.({ code, status, message, eventId }) ?? null;
    if (text !== null) client.send(text);
    if (refused.ends) this.end("refused", POLICY, message, error);
  }

  #fromProvider(data: Buffer, isBinary: boolean): void {
    if (this.#isEnded) return;
    this.lastMessageAt = performance.now();
    const { client, provider, dialect, meter, transcript } = this.#parts;
    const { message, error } = meter.fromProvider(data);
    transcript.received(data, message.kept);
    this.#pass(provider, client, data, isBinary);
    if (error === null) return;
    const { code, status } = error;
    const text = dialect.toError?.({ code, status, message: error.message, eventId: null }) ?? null;
    if (text !== null) client.send(text);
    this.end("refused", POLICY, error.message, error);
  }

  #pass(from: WebSocket, to: WebSocket, data: Buffer, isBinary: boolean): void {
    to.send(data, { binary: isBinary }, () => {
      if (!from.isPaused || to.bufferedAmount > LOW_WATER_BYTES) return;
      this.stalledSince = null;
      from.resume();
    });
    if (to.bufferedAmount <= HIGH_WATER_BYTES || from.isPaused) return;
    from.pause();
    this.stalledSince ??= performance.now();
  }

  #closed(side: "client" | "provider", code: number, reason: Buffer): void {
    if (this.#isEnded) return;
    const { client, provider } = this.#parts;
    if (side === "client") {
      if (code === ABNORMAL) close(provider, GOING_AWAY, "");
      else close(provider, code, reason.toString("utf8"));
    } else if (code === ABNORMAL) close(client, BAD_GATEWAY, "The connection to the provider broke");
    else close(client, code, reason.toString("utf8"));
    this.#settle(side, code, null);
  }

  /** A message that is too large, or bytes that are no frames: `ws` has sent the close frame to the side that sent them. */
  #broke(side: "client" | "provider", error: Error): void {
    if (this.#isEnded) return;
    const isTooBig = /max payload size/i.test(error.message);
    const { client, provider } = this.#parts;
    if (side === "client") close(provider, GOING_AWAY, "");
    else if (isTooBig) close(client, TOO_BIG, "The provider sent a message that is too large");
    else close(client, BAD_GATEWAY, "The connection to the provider broke");
    this.#settle(side, isTooBig ? TOO_BIG : ABNORMAL, null);
  }

  #settle(cause: EndCause, code: number, error: SignalboxError | null): void {
    this.#isEnded = true;
    this.#stopWatching?.();
    // Both must be read to the end, or their close frames would wait behind unread messages.
    for (const socket of [this.#parts.client, this.#parts.provider]) if (socket.isPaused) socket.resume();
    const figures = this.#parts.meter.end(cause !== "provider");
    this.#parts.onEnd(this, { cause, code, figures, error });
  }
}

/** Codes that a peer may send: RFC 6455, section 7.4, and the registry of IANA. */
function close(socket: WebSocket, code: number, reason: string): void {
  if (socket.readyState !== WebSocket.OPEN && socket.readyState !== WebSocket.CLOSING) return;
  const isSendable =
    (code >= 1000 && code <= 1014 && ![1004, NO_STATUS, ABNORMAL].includes(code)) ||
    (code >= 3000 && code <= 4999);
  if (!isSendable) socket.close();
  else socket.close(code, cutReason(reason));
}

/** A reason is UTF-8; a character that is cut in half would be refused by the peer. */
function cutReason(reason: string): string {
  if (Buffer.byteLength(reason) <= MAX_REASON_BYTES) return reason;
  let text = reason.slice(0, MAX_REASON_BYTES);
  while (Buffer.byteLength(text) > MAX_REASON_BYTES) text = text.slice(0, -1);
  return text.isWellFormed() ? text : text.slice(0, -1);
}

/**
 * One realtime session: passes messages between a client and a provider.
 *
 * States:  open ──► ended
 *   ended: both sockets are closing, the usage is settled and the row is recorded. No message is passed on any more.
 *
 * Invariants:
 * 1. Messages leave in the order in which they arrived, whole and, unless a guardrail masks a text, unchanged; a close frame leaves behind the messages before it.
 * 2. A side that reads slowly stops the reading of the other side (message-lane.ts).
 * 3. `end` runs once, whichever side, limit or timer comes first.
 */
import { SignalboxError } from "@signalbox/protocol";
import { WebSocket } from "ws";
import type { SessionGuard, SessionMessage } from "../guardrails/session-guard.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { SessionDialect } from "./message.ts";
import { MessageLane } from "./message-lane.ts";
import type { ClientVerdict, ProviderVerdict, SessionMeter } from "./session-meter.ts";
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
  readonly spend: CallSpend;
  readonly error: SignalboxError | null;
}

export interface SessionParts {
  readonly client: WebSocket;
  readonly provider: WebSocket;
  readonly dialect: SessionDialect;
  readonly meter: SessionMeter;
  readonly transcript: SessionTranscript;
  readonly guard: SessionGuard;
  readonly gateway: Pick<Gateway, "accountId" | "id">;
  /** Bytes that the client's socket has received. */
  readonly receivedBytes: () => number;
  readonly onEnd: (session: Session, end: SessionEnd) => void;
}

/** RFC 6455, section 5.5: a control frame has 125 bytes, two of which are the code. */
const MAX_REASON_BYTES = 123;
const GOING_AWAY = 1001;
const NO_STATUS = 1005;
const ABNORMAL = 1006;
const POLICY = 1008;
const TOO_BIG = 1009;
const INTERNAL_ERROR = 1011;
const BAD_GATEWAY = 1014;

export class Session {
  readonly startedAt = performance.now();
  lastMessageAt = this.startedAt;
  /** A pong or message of the client has arrived since the last ping. */
  isAlive = true;
  readonly #parts: SessionParts;
  readonly #toProvider: MessageLane;
  readonly #toClient: MessageLane;
  #isEnded = false;
  /** Bytes that the client's socket had received when its last message was whole. */
  #wholeBytes: number;
  #stopWatching: (() => void) | null = null;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#wholeBytes = parts.receivedBytes();
    const { client, provider } = parts;
    this.#toProvider = new MessageLane(client, provider);
    this.#toClient = new MessageLane(provider, client);
    client.on("message", (data: Buffer, isBinary: boolean) => {
      this.#wholeBytes = parts.receivedBytes();
      this.isAlive = true;
      this.#toProvider.arrive(data.length, () => this.#fromClient(data, isBinary));
    });
    provider.on("message", (data: Buffer, isBinary: boolean) =>
      this.#toClient.arrive(data.length, () => this.#fromProvider(data, isBinary)),
    );
    client.on("pong", () => (this.isAlive = true));
    client.on("close", (code: number, reason: Buffer) =>
      this.#toProvider.arrive(0, () => this.#closed("client", code, reason)),
    );
    provider.on("close", (code: number, reason: Buffer) =>
      this.#toClient.arrive(0, () => this.#closed("provider", code, reason)),
    );
    // `ws` closes the socket itself after a protocol error, and the close event follows.
    client.on("error", (error) => this.#broke("client", error));
    provider.on("error", (error) => this.#broke("provider", error));
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Since when a side does not read; null while both do. */
  get stalledSince(): number | null {
    return this.#toClient.stalledSince ?? this.#toProvider.stalledSince;
  }

  /** Memory that the session holds: messages on their way out, and parts of messages that have not arrived whole. */
  get bufferedBytes(): number {
    const { client, provider, receivedBytes, guard } = this.#parts;
    const held = this.#toProvider.heldBytes + this.#toClient.heldBytes + guard.heldBytes;
    return client.bufferedAmount + provider.bufferedAmount + held + receivedBytes() - this.#wholeBytes;
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

  #fromClient(data: Buffer, isBinary: boolean): Promise<void> | null {
    this.lastMessageAt = performance.now();
    const { guard } = this.#parts;
    if (!guard.isOn) return this.#admit(data, data, isBinary);
    try {
      const guarded = guard.fromClient({ data, isBinary });
      if (!(guarded instanceof Promise)) return this.#admit(data, guarded.data, isBinary);
      return guarded.then(
        async (late) => {
          if (!this.#isEnded) await this.#admit(data, late.data, isBinary);
        },
        (error: unknown) => this.#refuse(error, false),
      );
    } catch (error) {
      this.#refuse(error, false);
      return null;
    }
  }

  /** `sent`: what goes to the provider of what the client has written. */
  #admit(data: Buffer, sent: Buffer, isBinary: boolean): Promise<void> | null {
    return this.#judged(this.#parts.meter.fromClient(data), (verdict: ClientVerdict) => {
      const { client, dialect, transcript } = this.#parts;
      const { refused, isKept } = verdict;
      if (refused === null) {
        transcript.sent(data, isKept);
        this.#toProvider.send(sent, isBinary);
        return null;
      }
      const { error, eventId } = refused;
      const { code, status, message } = error;
      const text = dialect.toError?.({ code, status, message, eventId }) ?? null;
      if (text !== null) client.send(text);
      if (refused.ends) this.end("refused", POLICY, message, error);
      return null;
    });
  }

  #fromProvider(data: Buffer, isBinary: boolean): Promise<void> | null {
    this.lastMessageAt = performance.now();
    return this.#judged(this.#parts.meter.fromProvider(data), ({ message, error }: ProviderVerdict) => {
      const { transcript, guard } = this.#parts;
      transcript.received(data);
      const isKept = message.kept;
      if (!guard.isOn) {
        transcript.passed(data, isKept);
        this.#toClient.send(data, isBinary);
        this.#endWith(error);
        return null;
      }
      return this.#passOn(
        () => guard.fromProvider({ data, isBinary, isKept }),
        () => this.#endWith(error),
      );
    });
  }

  #endWith(error: SignalboxError | null): void {
    if (error === null) return;
    const { client, dialect } = this.#parts;
    const { code, status } = error;
    const text = dialect.toError?.({ code, status, message: error.message, eventId: null }) ?? null;
    if (text !== null) client.send(text);
    this.end("refused", POLICY, error.message, error);
  }

  /** Sends and records what the guardrails let pass, and goes on with `then` unless they end the session. */
  #passOn(
    search: () => readonly SessionMessage[] | Promise<readonly SessionMessage[]>,
    then: () => void,
  ): Promise<void> | null {
    const pass = (messages: readonly SessionMessage[]) => {
      if (this.#isEnded) return;
      for (const { data, isBinary, isKept = false } of messages) {
        this.#parts.transcript.passed(data, isKept);
        this.#toClient.send(data, isBinary);
      }
      then();
    };
    try {
      const found = search();
      if (found instanceof Promise) return found.then(pass, (error: unknown) => this.#refuse(error, true));
      pass(found);
    } catch (error) {
      this.#refuse(error, true);
    }
    return null;
  }

  /** A message of the client is left out; what the provider wrote ends the session. */
  #refuse(error: unknown, ends: boolean): void {
    if (this.#isEnded) return;
    const { client, dialect } = this.#parts;
    const known = error instanceof SignalboxError ? error : new SignalboxError("internal", { cause: error });
    const { code, status, message } = known;
    const text = dialect.toError?.({ code, status, message, eventId: null }) ?? null;
    if (text !== null) client.send(text);
    if (ends || text === null) this.end("refused", POLICY, message, known);
  }

  #judged<Verdict>(
    verdict: Verdict | Promise<Verdict>,
    act: (verdict: Verdict) => Promise<void> | null,
  ): Promise<void> | null {
    if (!(verdict instanceof Promise)) return act(verdict);
    return verdict.then(
      async (late) => {
        if (!this.#isEnded) await act(late);
      },
      () => this.end("refused", INTERNAL_ERROR, "Internal error"),
    );
  }

  #closed(side: "client" | "provider", code: number, reason: Buffer): Promise<void> | null {
    if (this.#isEnded) return null;
    const { client, provider, guard } = this.#parts;
    if (side === "client") {
      if (code === ABNORMAL) close(provider, GOING_AWAY, "");
      else close(provider, code, reason.toString("utf8"));
      this.#settle(side, code, null);
      return null;
    }
    return this.#passOn(
      () => guard.end(),
      () => {
        if (code === ABNORMAL) close(client, BAD_GATEWAY, "The connection to the provider broke");
        else close(client, code, reason.toString("utf8"));
        this.#settle(side, code, null);
      },
    );
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
    this.#toProvider.stop();
    this.#toClient.stop();
    this.#parts.guard.close();
    const spend = this.#parts.meter.end(cause !== "provider");
    this.#parts.onEnd(this, { cause, code, spend, error });
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

/**
 * A WebSocket of this node in a cluster: it stays here while its instance runs here or at other nodes. Keeps what is needed to continue at the next
 * owner: the facts of the connection, the messages without an answer, and the last state that the client was sent.
 *
 * Invariants:
 * 1. Messages and the close are in the order of their arrival. Each is given to one owner at a time, and to another one only if it certainly did
 *    not run.
 * 2. If it is unknown whether a message ran, a method call is answered with an error, and other messages are dropped.
 * 3. The messages that wait are bounded for all sockets of the instance together; beyond that they are refused as by a full queue.
 * 4. After a move the client receives the state once, unless it has that state.
 */
import { parseClientFrame, type ServerFrame, SignalboxError } from "@signalbox/protocol";
import { toFrame } from "../../../engines/http-server/index.ts";
import type { ConnectionContext } from "../../api/connection.ts";
import type { ConnectionFacts, ConnectionSocket } from "../../connections/connection-socket.ts";
import type { LocalSocket } from "../../../engines/http-server/index.ts";
import type { SocketTarget } from "../../doors/arrived-socket.ts";
import type { AcceptedSocket, ConnectionInbox } from "../../doors/connection-inbox.ts";
import { isStateFrame, mayBeState } from "./state-frame.ts";

/** What has happened at the socket, in order. */
export type EdgeEvent = EdgeMessage | EdgeClose;

interface EventState {
  readonly ticket: number;
  /** The number of the item that was sent to the owner; null: the event was given to no owner, or certainly did not run there. */
  item: number | null;
}

export interface EdgeMessage extends EventState {
  readonly kind: "message";
  readonly message: string | Buffer;
  readonly bytes: number;
  readonly onHandled: () => void;
}

export interface EdgeClose extends EventState {
  readonly kind: "close";
  readonly code: number;
  readonly reason: string;
}

/** The sockets of one instance, as one of them uses them. */
export interface EdgeHome {
  /** Bytes of messages without an answer. */
  waitingBytes: number;
  /** An event has happened. */
  take(connection: EdgeConnection, event: EdgeEvent): void;
  loseCredential(connection: EdgeConnection): void;
  /** The connection has no events any more and is closed. */
  forget(connection: EdgeConnection): void;
}

/** The error of a call that was given to an owner that is gone. */
export const OUTCOME_UNKNOWN =
  "The outcome of the call is unknown: the node that ran the instance is gone. The call may have run";

/** Messages that may wait for the owner of one instance at one node, in bytes: the queue of the instance is bounded too. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

export class EdgeConnection implements SocketTarget, ConnectionSocket {
  readonly number: number;
  readonly accepted: AcceptedSocket;
  readonly context: ConnectionContext;
  readonly #socket: LocalSocket;
  readonly #home: EdgeHome;
  readonly #events = new Map<number, EdgeEvent>();
  #nextTicket = 1;
  /** Null until an owner has greeted the client: until then a next owner runs `onConnect`. */
  facts: ConnectionFacts | null = null;
  /** While the instance runs here. */
  inbox: ConnectionInbox | null = null;
  hasLostCredential = false;
  /** Refused, or dismissed with its instance: no owner needs to know of it any more. */
  isEnded = false;
  #isGone = false;
  /** The frame of the last state that the client was sent; null if it is not known which state the client has. */
  #lastState: Buffer | null = null;
  #isResuming = false;

  constructor(
    number: number,
    accepted: AcceptedSocket,
    socket: LocalSocket,
    context: ConnectionContext,
    home: EdgeHome,
  ) {
    this.number = number;
    this.accepted = accepted;
    this.context = context;
    this.#socket = socket;
    this.#home = home;
  }

  // ── What the socket tells ──

  receive(message: string | Buffer): Promise<void> {
    if (mayBeState(message)) this.#lastState = null;
    const bytes = message.length;
    if (this.#home.waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#refuse(message, new SignalboxError("overloaded").message);
      return Promise.resolve();
    }
    this.#home.waitingBytes += bytes;
    return new Promise((resolve) => {
      const ticket = this.#nextTicket++;
      this.#add({ kind: "message", ticket, item: null, message, bytes, onHandled: resolve });
    });
  }

  loseCredential(): void {
    this.hasLostCredential = true;
    this.#home.loseCredential(this);
  }

  leave(code: number, reason: string): void {
    this.#isGone = true;
    this.#add({ kind: "close", ticket: this.#nextTicket++, item: null, code, reason });
  }

  #add(event: EdgeEvent): void {
    this.#events.set(event.ticket, event);
    if (this.isEnded) this.handled(event.ticket);
    else this.#home.take(this, event);
  }

  // ── What an owner tells ──

  get isClosed(): boolean {
    return this.#isGone || this.#socket.isClosed;
  }

  get readyState(): number {
    return this.#socket.readyState;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  /** The facts are read from the connection itself while the instance runs here. */
  readonly onFacts = (): void => undefined;

  write(frame: Buffer): void {
    if (isStateFrame(frame)) {
      const isKnown = this.#isResuming && this.#lastState?.equals(frame) === true;
      this.#isResuming = false;
      this.#lastState = frame;
      if (isKnown) return;
    }
    this.#socket.write(frame);
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  /** The connection resumes at an owner, which sends the state first. */
  beginResume(): void {
    this.#isResuming = this.facts !== null;
  }

  // ── Events without an answer ──

  /** In order. Those that are with an owner have an item. */
  get events(): EdgeEvent[] {
    return [...this.#events.values()];
  }

  /** The event has been handled. */
  handled(ticket: number): void {
    const event = this.#events.get(ticket);
    if (event === undefined) return;
    this.#events.delete(ticket);
    if (event.kind === "message") {
      this.#home.waitingBytes -= event.bytes;
      event.onHandled();
    } else this.#home.forget(this);
  }

  /** The event certainly did not run: the next owner receives it. */
  notRun(ticket: number): void {
    const event = this.#events.get(ticket);
    if (event !== undefined) event.item = null;
  }

  /** The owner is gone, after it had received `received` items: it is unknown which of them ran. Later ones did not. */
  ownerGone(received: number): void {
    for (const event of this.#events.values()) {
      if (event.item === null) continue;
      if (event.item >= received) event.item = null;
      else {
        if (event.kind === "message") this.#reportUnknown(event.message);
        this.handled(event.ticket);
      }
    }
  }

  /** The connection is refused or its instance was destroyed: what waits is dropped. */
  end(code: number, reason: string): void {
    this.isEnded = true;
    for (const event of this.events) this.handled(event.ticket);
    if (!this.isClosed) this.close(code, reason);
  }

  #reportUnknown(message: string | Buffer): void {
    const frame = typeof message === "string" ? parseClientFrame(message) : null;
    if (frame?.type === "rpc")
      this.#sendNow({ type: "rpc", id: frame.id, success: false, error: OUTCOME_UNKNOWN });
  }

  /** As an instance whose queue is full. */
  #refuse(message: string | Buffer, error: string): void {
    const frame = typeof message === "string" ? parseClientFrame(message) : null;
    if (frame?.type === "rpc") this.#sendNow({ type: "rpc", id: frame.id, success: false, error });
    else this.#sendNow({ type: "cf_agent_state_error", error });
  }

  #sendNow(frame: ServerFrame): void {
    this.#socket.write(toFrame(JSON.stringify(frame)));
  }
}

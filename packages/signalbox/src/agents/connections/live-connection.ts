/**
 * One WebSocket of an instance, at the node that runs the instance. It stays open while the instance is not in memory. Its client's end is a
 * `ConnectionSocket`: a WebSocket of this process, or of another node.
 *
 *   joining → open → closed
 *
 * Invariants:
 * 1. Everything that is sent passes the outputs of the instance; protocol frames and messages of the agent leave in order of production.
 * 2. When its credential has ended, no message of the connection takes effect any more, including those that wait for their turns.
 */
import { SignalboxError } from "@signalbox/protocol";
import type {
  Connection,
  ConnectionListener,
  ConnectionMessage,
  ListenerOptions,
} from "../api/connection.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import { isCloseCode } from "./close-code.ts";
import { ConnectionListeners } from "./connection-listeners.ts";
import type { ConnectionOutlet } from "./connection-outlet.ts";
import type { ConnectionFacts, ConnectionSocket } from "./connection-socket.ts";
import { toFrame } from "../../engines/http-server/index.ts";
import { requirePresent } from "../../engines/turn-runtime/index.ts";

export class LiveConnection implements Connection {
  readonly id: string;
  readonly uri: string;
  readonly #socket: ConnectionSocket;
  readonly #outlet: ConnectionOutlet;
  tags: readonly string[];
  /** The credential allows reading only. The agent cannot lift this. */
  readonly #isReadonlyByAccess: boolean;
  /** The agent made the connection read-only. */
  #isReadonlyForAgent = false;
  /** False for a connection that wants no frames of the protocol, other than answers. */
  hasProtocol = true;
  /** Null until the agent adds one. */
  listeners: ConnectionListeners | null = null;
  /** False until the connect turn has run: the connection receives no broadcasts before. */
  isJoined = false;
  /** When the connection joined; 0 before. */
  joinedAt = 0;
  #isClosed = false;
  #hasLostCredential = false;
  #isGreeted = false;
  #isDetached = false;
  #state: unknown = null;
  #attachment: unknown = null;
  #asCaller: AgentOrigin | null = null;
  #onEnd: Set<() => void> | null = null;
  #arrived = 0;
  #begun = 0;
  /** The agent's hooks have decided what the connection may do; no message takes effect before. */
  isAdmitted = false;

  constructor(
    outlet: ConnectionOutlet,
    id: string,
    uri: string,
    socket: ConnectionSocket,
    isReadonlyByAccess: boolean,
  ) {
    this.#outlet = outlet;
    this.id = id;
    this.uri = uri;
    this.tags = [id];
    this.#socket = socket;
    this.#isReadonlyByAccess = isReadonlyByAccess;
  }

  /** For `socketOf`: agents' code has the connection, and must not have its socket. */
  static socketOf(connection: LiveConnection): ConnectionSocket {
    return connection.#socket;
  }

  get isReadonly(): boolean {
    return this.#isReadonlyByAccess || this.#isReadonlyForAgent;
  }

  set isReadonlyForAgent(isReadonly: boolean) {
    this.#isReadonlyForAgent = isReadonly;
    this.#factsChanged();
  }

  /** The connection as the origin of turns: their code may write unless the connection is read-only at that moment. */
  get asCaller(): AgentOrigin {
    this.#asCaller ??= { connection: this, requireWritable: () => this.requireWritable() };
    return this.#asCaller;
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#socket.isClosed;
  }

  get state(): unknown {
    return this.#state;
  }

  setState(state: unknown): unknown {
    this.#state =
      typeof state === "function" ? (state as (previous: unknown) => unknown)(this.#state) : state;
    this.#factsChanged();
    return this.#state;
  }

  send(message: ConnectionMessage): void {
    const frame = toFrame(toBytes(message));
    this.#outlet.output(() => this.write(frame));
  }

  /** `send` that calls back when the message has left. */
  sendThen(message: string, onLeft: () => void): void {
    const frame = toFrame(message);
    this.#outlet.output(() => {
      this.write(frame);
      onLeft();
    });
  }

  close(code = 1000, reason = ""): void {
    if (!isCloseCode(code)) throw new RangeError(`${code} is not a valid close code`);
    this.#outlet.output(() => this.closeNow(code, reason));
  }

  /** Writes a complete frame directly, bypassing the outputs of the instance. */
  write(frame: Buffer): void {
    if (!this.#isClosed) this.#socket.write(frame);
  }

  closeNow(code: number, reason: string): void {
    // The socket of a detached connection belongs to its successor.
    if (this.#isDetached) return;
    this.#isClosed = true;
    this.#socket.close(code, reason);
  }

  /** The token or session of the connection was revoked or has expired; its socket is being closed. */
  loseCredential(): void {
    this.#hasLostCredential = true;
    this.#isClosed = true;
  }

  /** Throws when the credential of the connection has ended. */
  requireCredential(): void {
    if (this.#hasLostCredential) throw new SignalboxError("unauthenticated");
  }

  /** Throws when the credential allows reading only: the agent's handler of messages takes them for those of a writer. */
  requireMessages(): void {
    if (this.#isReadonlyByAccess) throw new SignalboxError("agent_readonly");
  }

  /** Throws for a read-only connection. Called before each write of its turns. */
  requireWritable(): void {
    if (this.isReadonly) throw new SignalboxError("agent_readonly");
  }

  // ── The rest of the surface of a `WebSocket`, for code that is handed a connection as one ──

  declare readonly OPEN: 1;
  declare readonly binaryType: "arraybuffer";

  get url(): string {
    return this.uri;
  }

  get readyState(): number {
    return this.isClosed ? this.#socket.readyState : this.OPEN;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  /** A connection is accepted before the agent sees it. */
  accept(): void {}

  serializeAttachment(attachment: unknown): void {
    this.#attachment = structuredClone(attachment);
    this.#factsChanged();
  }

  deserializeAttachment(): unknown {
    return structuredClone(this.#attachment);
  }

  addEventListener(type: string, listener: ConnectionListener, options?: ListenerOptions): void {
    requirePresent();
    if (this.isClosed) return;
    this.listeners ??= new ConnectionListeners(this.#outlet.hold());
    this.listeners.add(type, listener, options);
  }

  removeEventListener(type: string, listener: ConnectionListener): void {
    this.listeners?.remove(type, listener);
    if (this.listeners?.isEmpty === true) this.dropListeners();
  }

  /** The connection has ended, or the instance whose functions they are has left memory. */
  dropListeners(): void {
    this.listeners?.release();
    this.listeners = null;
  }

  markClosed(): void {
    this.#isClosed = true;
    const callbacks = this.#onEnd;
    this.#onEnd = null;
    if (callbacks !== null) for (const callback of callbacks) callback();
  }

  /** Calls back when the socket closes; at once if it has closed. The returned function cancels that. */
  onEnd(callback: () => void): () => void {
    if (this.isClosed) {
      callback();
      return () => undefined;
    }
    const callbacks = (this.#onEnd ??= new Set());
    callbacks.add(callback);
    return () => void callbacks.delete(callback);
  }

  // ── Moving to another node with the instance ──

  /** The client has been greeted: from now on the connection survives a move of its instance without a second `onConnect`. */
  reportJoined(): void {
    if (this.#socket.onFacts === undefined) return;
    this.#outlet.output(() => {
      this.#isGreeted = true;
      this.#factsChanged();
    });
  }

  #factsChanged(): void {
    if (this.#isGreeted) this.#socket.onFacts?.();
  }

  /** Null before the client has been greeted. */
  get facts(): ConnectionFacts | null {
    if (!this.#isGreeted) return null;
    const { tags, hasProtocol, joinedAt } = this;
    return {
      tags,
      hasProtocol,
      joinedAt,
      state: this.#state,
      attachment: this.#attachment,
      isReadonlyForAgent: this.#isReadonlyForAgent,
    };
  }

  /** The connection was joined at another node. */
  adopt(facts: ConnectionFacts): void {
    this.tags = facts.tags;
    this.hasProtocol = facts.hasProtocol;
    this.joinedAt = facts.joinedAt;
    this.#state = facts.state;
    this.#attachment = facts.attachment;
    this.#isReadonlyForAgent = facts.isReadonlyForAgent;
    this.isAdmitted = true;
    this.#isGreeted = true;
  }

  get isDetached(): boolean {
    return this.#isDetached;
  }

  /** The instance has moved away: the connection continues at another node, without `onClose`. */
  detach(): void {
    this.#isDetached = true;
    this.isJoined = false;
    this.markClosed();
    this.dropListeners();
  }

  // ── The order of a connection's events ──

  /** A message has arrived; its turn may have to wait. */
  messageArrived(): void {
    this.#arrived += 1;
  }

  /** The turn of a message begins. Throws when the credential of the connection has ended. */
  beginMessage(): void {
    this.#begun += 1;
    this.requireCredential();
  }

  /** The turn of a message will never begin. */
  messageRefused(): void {
    this.#begun += 1;
  }

  get hasWaitingMessages(): boolean {
    return this.#begun < this.#arrived;
  }
}

// On the prototype: a process has many connections.
Object.assign(LiveConnection.prototype, {
  CONNECTING: 0,
  OPEN: 1,
  CLOSING: 2,
  CLOSED: 3,
  binaryType: "arraybuffer",
  protocol: "",
  extensions: "",
});

/** The client's end, for the group of the connection. */
export const { socketOf } = LiveConnection;

export function toBytes(message: ConnectionMessage): string | Uint8Array {
  if (typeof message === "string" || message instanceof Uint8Array) return message;
  if (ArrayBuffer.isView(message))
    return new Uint8Array(message.buffer, message.byteOffset, message.byteLength);
  return new Uint8Array(message);
}

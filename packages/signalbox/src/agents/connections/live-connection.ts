/**
 * One WebSocket of an instance. It stays open while the instance is not in memory.
 *
 *   joining → open → closed
 *
 * Invariants:
 * 1. Everything that is sent passes the outputs of the instance; protocol frames and messages of the agent leave in order of production.
 * 2. The bytes buffered for a slow reader are bounded: beyond the limit the connection is closed with 1013 (try again later), and terminated
 *    if the reader does not read the close frame.
 * 3. When its credential has ended, no message of the connection takes effect any more, including those that wait for their turns.
 */
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import type { WebSocket } from "ws";
import { closeCodeOf } from "../../http/render-error.ts";
import type {
  Connection,
  ConnectionListener,
  ConnectionMessage,
  ListenerOptions,
} from "../api/connection.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import { isCloseCode } from "./close-code.ts";
import { ConnectionListeners } from "./connection-listeners.ts";
import type { ConnectionLimits, ConnectionOutlet } from "./connection-outlet.ts";
import { toFrame } from "../../engines/http-server/index.ts";
import { type OutputGate, requirePresent } from "../../engines/turn-runtime/index.ts";

/** How long a slow reader may take to answer the close frame. */
const SLOW_READER_GRACE_MS = 2000;
/** How long a peer whose credential has ended may take to answer the close frame. */
const ENDED_GRACE_MS = 500;
/** Space for the reason in a close frame (RFC 6455, section 5.5). */
export const MAX_REASON_BYTES = 123;

export class LiveConnection implements Connection {
  readonly id: string;
  readonly uri: string;
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  readonly #outlet: ConnectionOutlet;
  tags: readonly string[];
  /** The credential allows reading only. The agent cannot lift this. */
  readonly #isReadonlyByAccess: boolean;
  /** The agent made the connection read-only. */
  isReadonlyForAgent = false;
  /** False for a connection that wants no frames of the protocol, other than answers. */
  hasProtocol = true;
  /** Null until the agent adds one. */
  listeners: ConnectionListeners | null = null;
  /** False from a ping until its pong. */
  isAlive = true;
  /** False until the connect turn has run: the connection receives no broadcasts before. */
  isJoined = false;
  #isClosed = false;
  #hasLostCredential = false;
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
    webSocket: WebSocket,
    socket: Duplex,
    isReadonlyByAccess: boolean,
  ) {
    this.#outlet = outlet;
    this.id = id;
    this.uri = uri;
    this.tags = [id];
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#isReadonlyByAccess = isReadonlyByAccess;
  }

  get isReadonly(): boolean {
    return this.#isReadonlyByAccess || this.isReadonlyForAgent;
  }

  /** The connection as the origin of turns: their code may write unless the connection is read-only at that moment. */
  get asCaller(): AgentOrigin {
    this.#asCaller ??= { connection: this, requireWritable: () => this.requireWritable() };
    return this.#asCaller;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get state(): unknown {
    return this.#state;
  }

  setState(state: unknown): unknown {
    this.#state =
      typeof state === "function" ? (state as (previous: unknown) => unknown)(this.#state) : state;
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
    if (this.#isClosed || !this.#socket.writable) return;
    if (this.#socket.writableLength > this.#outlet.limits.maxBufferedBytes) {
      this.closeNow(1013, "too slow");
      setTimeout(() => this.#webSocket.terminate(), SLOW_READER_GRACE_MS).unref();
      return;
    }
    this.#socket.write(frame);
  }

  closeNow(code: number, reason: string): void {
    this.#isClosed = true;
    this.#webSocket.close(code, Buffer.byteLength(reason) > MAX_REASON_BYTES ? "" : reason);
  }

  /** Closes the connection because its token or session was revoked or has expired. */
  endWithCredential(): void {
    this.#hasLostCredential = true;
    const { code, reason } = closeCodeOf(new SignalboxError("unauthenticated"));
    this.closeNow(code, reason);
    setTimeout(() => this.#webSocket.terminate(), ENDED_GRACE_MS).unref();
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
    return this.#isClosed ? this.#webSocket.readyState : this.OPEN;
  }

  get bufferedAmount(): number {
    return this.#socket.writableLength;
  }

  /** A connection is accepted before the agent sees it. */
  accept(): void {}

  serializeAttachment(attachment: unknown): void {
    this.#attachment = structuredClone(attachment);
  }

  deserializeAttachment(): unknown {
    return structuredClone(this.#attachment);
  }

  addEventListener(type: string, listener: ConnectionListener, options?: ListenerOptions): void {
    requirePresent();
    if (this.#isClosed) return;
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

  /** Terminates a connection that has not answered the last ping, otherwise pings it. */
  checkAlive(): void {
    if (!this.isAlive) {
      this.#webSocket.terminate();
      return;
    }
    this.isAlive = false;
    this.#webSocket.ping();
  }

  pause(): void {
    this.#webSocket.pause();
  }

  resume(): void {
    this.#webSocket.resume();
  }

  markClosed(): void {
    this.#isClosed = true;
    const callbacks = this.#onEnd;
    this.#onEnd = null;
    if (callbacks !== null) for (const callback of callbacks) callback();
  }

  /** Calls back when the socket closes; at once if it has closed. The returned function cancels that. */
  onEnd(callback: () => void): () => void {
    if (this.#isClosed) {
      callback();
      return () => undefined;
    }
    const callbacks = (this.#onEnd ??= new Set());
    callbacks.add(callback);
    return () => void callbacks.delete(callback);
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

  /** No message waits: those that never began were refused. */
  allAnswered(): void {
    this.#begun = this.#arrived;
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

function toBytes(message: ConnectionMessage): string | Uint8Array {
  if (typeof message === "string" || message instanceof Uint8Array) return message;
  if (ArrayBuffer.isView(message))
    return new Uint8Array(message.buffer, message.byteOffset, message.byteLength);
  return new Uint8Array(message);
}

/*
 * The connections of one instance. The group exists as long as it has a connection, whether or not the instance is in memory.
 *
 * Invariants:
 * 1. Ids are unique among joined connections: a client that reconnects with its id replaces its old socket, which is closed.
 * 2. A message for several connections is encoded once.
 * 3. Code of an instance that has left memory cannot send, although the connections belong to its successor.
 */

/** Stock clients do not reconnect after this code: the client has a newer socket, or another client uses the same id. */
const REPLACED = 4409;

export class ConnectionGroup implements ConnectionOutlet {
  readonly key: string;
  readonly limits: ConnectionLimits;
  readonly #joined = new Map<string, LiveConnection>();
  /** The outputs of the instance; null while the instance is not in memory, when nothing can wait for a sync. */
  outputs: Pick<OutputGate, "sendWithSegment"> | null = null;
  /** The number of sockets, joined or not. */
  size = 0;

  constructor(key: string, limits: ConnectionLimits) {
    this.key = key;
    this.limits = limits;
  }

  get joined(): Iterable<LiveConnection> {
    return this.#joined.values();
  }

  get joinedCount(): number {
    return this.#joined.size;
  }

  /** Keeps the instance in memory; null while it is not. */
  holdInstance: (() => () => void) | null = null;

  hold(): () => void {
    return this.holdInstance?.() ?? (() => undefined);
  }

  output(release: () => void): void {
    requirePresent();
    if (this.outputs === null) release();
    else this.outputs.sendWithSegment({ release, drop: () => undefined });
  }

  join(connection: LiveConnection): void {
    const older = this.#joined.get(connection.id);
    this.#joined.set(connection.id, connection);
    connection.isJoined = true;
    older?.closeNow(REPLACED, "replaced by a newer connection");
  }

  leave(connection: LiveConnection): void {
    if (this.#joined.get(connection.id) === connection) this.#joined.delete(connection.id);
  }

  find(id: string): LiveConnection | undefined {
    return this.#joined.get(id);
  }

  list(tag?: string): LiveConnection[] {
    const all = [...this.#joined.values()];
    return tag === undefined ? all : all.filter((connection) => connection.tags.includes(tag));
  }

  /** Sends to the connections that are joined at the time of the call, except those in `withoutIds`. */
  broadcast(message: ConnectionMessage, withoutIds: readonly string[]): void {
    if (this.#joined.size === 0) return;
    this.#send(
      message,
      [...this.#joined.values()].filter(({ id }) => !withoutIds.includes(id)),
    );
  }

  /** Sends a frame of the protocol, except to the connection that caused it. */
  broadcastFrame(message: string, exceptId: string | null): void {
    if (this.#joined.size === 0) return;
    this.#send(
      message,
      [...this.#joined.values()].filter(({ id, hasProtocol }) => hasProtocol && id !== exceptId),
    );
  }

  #send(message: ConnectionMessage, receivers: readonly LiveConnection[]): void {
    const frame = toFrame(toBytes(message));
    this.output(() => {
      for (const receiver of receivers) receiver.write(frame);
    });
  }

  /** The instance has left memory, and with it the functions that listen to the connections. */
  detach(): void {
    this.outputs = null;
    this.holdInstance = null;
    for (const connection of this.#joined.values()) connection.dropListeners();
  }

  /** Closes every connection of a destroyed instance, without `onClose`. */
  dismiss(code: number, reason: string): void {
    for (const connection of this.#joined.values()) {
      connection.isJoined = false;
      connection.closeNow(code, reason);
    }
    this.#joined.clear();
  }
}

/**
 * The connections of one instance. The group exists as long as it has a connection, whether or not the instance is in memory.
 *
 * Invariants:
 * 1. Ids are unique among joined connections: a client that reconnects with its id replaces its old socket, which is closed.
 * 2. A message for several connections is encoded once.
 * 3. A connection that follows the instance from another node receives every broadcast once, or the current state (`recent-broadcasts.ts`).
 * 4. After a failure of the instance's storage, connections receive what is stored (`isBehind`).
 * 5. Code of an instance that has left memory cannot send, although the connections belong to its successor.
 */
import { toFrame } from "../../engines/http-server/index.ts";
import { type OutputGate, requirePresent } from "../../engines/turn-runtime/index.ts";
import type { ConnectionMessage } from "../api/connection.ts";
import type { ConnectionLimits, ConnectionOutlet } from "./connection-outlet.ts";
import type { ConnectionSocket } from "./connection-socket.ts";
import { type LiveConnection, socketOf, toBytes } from "./live-connection.ts";
import { type Broadcast, RecentBroadcasts } from "./recent-broadcasts.ts";

/** Stock clients do not reconnect after this code: the client has a newer socket, or another client uses the same id. */
const REPLACED = 4409;
const REPLACED_REASON = "replaced by a newer connection";

interface Member {
  readonly connection: LiveConnection;
  /** A broadcast writes to the sockets themselves. */
  readonly socket: ConnectionSocket;
}

export class ConnectionGroup implements ConnectionOutlet {
  readonly key: string;
  readonly limits: ConnectionLimits;
  readonly #joined = new Map<string, Member>();
  /** The outputs of the instance; null while the instance is not in memory, when nothing can wait for a sync. */
  outputs: Pick<OutputGate, "send" | "sendWithSegment"> | null = null;
  /** The number of sockets, joined or not. */
  size = 0;
  /** The storage of the instance failed: what it had sent last may be stored, and has not left. Its successor sends the state again. */
  isBehind = false;
  /** Null where no instance moves, and later than some seconds after the instance was loaded. */
  #recent: RecentBroadcasts | null = null;

  constructor(key: string, limits: ConnectionLimits) {
    this.key = key;
    this.limits = limits;
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
    const older = this.find(connection.id);
    connection.joinedAt ||= Date.now();
    connection.isJoined = true;
    this.#recent?.joined(connection.id);
    // After a move of the instance, connections join again in any order.
    if (older !== undefined && older.joinedAt > connection.joinedAt) {
      connection.closeNow(REPLACED, REPLACED_REASON);
      return;
    }
    this.#joined.set(connection.id, { connection, socket: socketOf(connection) });
    older?.closeNow(REPLACED, REPLACED_REASON);
  }

  /** The instance was loaded, and connections of other nodes may follow it. */
  keepRecent(): void {
    const recent = new RecentBroadcasts(() => {
      if (this.#recent === recent) this.#recent = null;
    });
    // Connections that stayed here while the instance was loaded again miss nothing.
    for (const id of this.#joined.keys()) recent.joined(id);
    this.#recent = recent;
  }

  /** The connection has followed the instance to this node. The returned function sends what it has missed, and the state if that is not part of it. */
  resume(connection: LiveConnection): (state: Buffer | null) => void {
    const { id, hasProtocol } = connection;
    const isFirst = this.#recent?.hasJoined(id) === false;
    this.join(connection);
    return (state) => {
      const missed = isFirst ? (this.#recent?.for(id, hasProtocol) ?? []) : [];
      for (const { frame } of missed) connection.write(frame);
      const last = missed.findLast(({ isState }) => isState);
      if (hasProtocol && state !== null && last?.frame.equals(state) !== true) connection.write(state);
    };
  }

  leave(connection: LiveConnection): void {
    if (this.find(connection.id) === connection) this.#joined.delete(connection.id);
  }

  find(id: string): LiveConnection | undefined {
    return this.#joined.get(id)?.connection;
  }

  list(tag?: string): LiveConnection[] {
    const all = Array.from(this.#joined.values(), ({ connection }) => connection);
    return tag === undefined ? all : all.filter((connection) => connection.tags.includes(tag));
  }

  /** Sends to the connections that are joined at the time of the call, except those in `withoutIds`. */
  broadcast(message: ConnectionMessage, withoutIds: readonly string[]): void {
    if (this.#joined.size === 0 && this.#recent === null) return;
    this.#send(
      message,
      [...this.#joined.values()].filter(({ connection }) => !withoutIds.includes(connection.id)),
      { withoutIds, isState: false },
    );
  }

  /** Sends a frame of the protocol, except to the connection that caused it. */
  broadcastFrame(message: string, exceptId: string | null): void {
    if (this.#joined.size === 0 && this.#recent === null) return;
    this.#send(
      message,
      [...this.#joined.values()].filter(
        ({ connection: { id, hasProtocol } }) => hasProtocol && id !== exceptId,
      ),
      { withoutIds: exceptId === null ? [] : [exceptId], isState: true },
    );
  }

  /** If the predecessor's storage failed, sends the stored state. Called before the instance's code runs, so that its changes come later. */
  catchUp(readStored: () => string | null): void {
    if (!this.isBehind) return;
    this.isBehind = false;
    const message = readStored();
    if (message === null) return;
    const frame = toFrame(message);
    const receivers = [...this.#joined.values()].filter(({ connection }) => connection.hasProtocol);
    this.outputs?.send({
      release: () => {
        for (const { socket } of receivers) socket.write(frame);
      },
      drop: () => undefined,
    });
  }

  #send(message: ConnectionMessage, receivers: readonly Member[], to: Omit<Broadcast, "frame">): void {
    const frame = toFrame(typeof message === "string" ? message : toBytes(message));
    this.output(() => {
      this.#recent?.add({ frame, ...to });
      for (const { socket } of receivers) socket.write(frame);
    });
  }

  /** The instance has left memory, and with it the functions that listen to the connections. */
  detach(): void {
    this.outputs = null;
    this.holdInstance = null;
    this.#recent?.stop();
    for (const { connection } of this.#joined.values()) connection.dropListeners();
  }

  /** Closes every connection of a destroyed instance, without `onClose`. */
  dismiss(code: number, reason: string): void {
    for (const { connection } of this.#joined.values()) {
      connection.isJoined = false;
      connection.closeNow(code, reason);
    }
    this.#joined.clear();
  }
}

/**
 * The connections of one instance. The group exists as long as it has one, whether the instance is in memory or asleep.
 *
 * Invariants:
 * 1. Ids are unique among joined connections: a client that comes back with its id takes the place of its old socket, which is closed.
 * 2. A message for many is made into bytes once.
 */
import type { LiveConnection } from "./live-connection.ts";
import type { OutputGate } from "../../engines/turn-runtime/index.ts";
import { toFrame } from "../../engines/http-server/index.ts";

export interface ConnectionLimits {
  /** Bytes that may wait for one slow reader. */
  readonly maxBufferedBytes: number;
}

/** Final: the client that owns the old socket has a newer one, or is another client that must not fight over the id. */
const REPLACED = 4409;

export class ConnectionGroup {
  readonly key: string;
  readonly limits: ConnectionLimits;
  readonly #joined = new Map<string, LiveConnection>();
  /** The gate of the instance in memory; null while it sleeps and nothing can be unsynced. */
  gate: OutputGate | null = null;
  /** Sockets, joined or not. */
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

  output(release: () => void): void {
    if (this.gate === null) release();
    else this.gate.sendWithSegment({ release, drop: () => undefined });
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

  /** Goes to those joined when it is sent, less the ones named. */
  broadcast(message: string | Uint8Array, withoutIds: readonly string[]): void {
    if (this.#joined.size === 0) return;
    const frame = toFrame(message);
    const receivers = [...this.#joined.values()].filter(({ id }) => !withoutIds.includes(id));
    this.output(() => {
      for (const receiver of receivers) receiver.write(frame);
    });
  }

  /** Closes every connection of an instance that is no more: no `onClose` follows. */
  dismiss(code: number, reason: string): void {
    for (const connection of this.#joined.values()) {
      connection.isJoined = false;
      connection.closeNow(code, reason);
    }
    this.#joined.clear();
  }
}

/** Every live connection of the process, grouped by instance; pings them and cuts those that no longer answer. */
import { ConnectionGroup, type ConnectionLimits } from "./connection-group.ts";
import type { LiveConnection } from "./live-connection.ts";

export interface SocketHubOptions extends ConnectionLimits {
  /** How often connections are pinged; one that has not answered by the next ping is cut. */
  readonly pingIntervalMs: number;
}

export class SocketHub {
  readonly #options: SocketHubOptions;
  readonly #groups = new Map<string, ConnectionGroup>();
  readonly #connections = new Set<LiveConnection>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SocketHubOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#connections.size;
  }

  start(): void {
    this.#timer = setInterval(() => {
      for (const connection of this.#connections) connection.checkAlive();
    }, this.#options.pingIntervalMs).unref();
  }

  /** Tells every client to come back later, to another process. */
  closeAll(code: number, reason: string): void {
    clearInterval(this.#timer);
    for (const connection of this.#connections) connection.closeNow(code, reason);
  }

  group(key: string): ConnectionGroup {
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new ConnectionGroup(key, this.#options);
      this.#groups.set(key, group);
    }
    return group;
  }

  find(key: string): ConnectionGroup | undefined {
    return this.#groups.get(key);
  }

  add(group: ConnectionGroup, connection: LiveConnection): void {
    this.#connections.add(connection);
    group.size += 1;
  }

  remove(group: ConnectionGroup, connection: LiveConnection): void {
    if (!this.#connections.delete(connection)) return;
    group.size -= 1;
    this.releaseIfUnused(group);
  }

  /** Forgets a group that neither a connection nor an instance in memory needs. */
  releaseIfUnused(group: ConnectionGroup): void {
    if (group.size === 0 && group.gate === null && this.#groups.get(group.key) === group)
      this.#groups.delete(group.key);
  }
}

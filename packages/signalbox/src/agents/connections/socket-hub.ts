/** All WebSocket connections of the process, grouped by instance. Pings them and terminates those that do not answer. */
import type { ConnectionLimits } from "./connection-outlet.ts";
import { ConnectionGroup, type LiveConnection } from "./live-connection.ts";

export interface SocketHubOptions extends ConnectionLimits {
  /** Interval between pings; a connection that has not answered by the next ping is terminated. */
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

  /** Closes every connection. */
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

  /** Deletes a group without connections whose instance is not in memory. */
  releaseIfUnused(group: ConnectionGroup): void {
    if (group.size === 0 && group.outputs === null && this.#groups.get(group.key) === group)
      this.#groups.delete(group.key);
  }
}

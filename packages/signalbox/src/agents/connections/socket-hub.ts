/**
 * All WebSockets of the process, and the connections of the instances that run here, which may end at other nodes. Pings the sockets and terminates
 * those that do not answer.
 */
import type { ConnectionLimits } from "./connection-outlet.ts";
import { ConnectionGroup } from "./connection-group.ts";
import type { LocalSocket } from "../../engines/http-server/index.ts";

export interface SocketHubOptions extends ConnectionLimits {
  /** Interval between pings; a connection that has not answered by the next ping is terminated. */
  readonly pingIntervalMs: number;
}

export class SocketHub {
  readonly #options: SocketHubOptions;
  readonly #groups = new Map<string, ConnectionGroup>();
  readonly #sockets = new Set<LocalSocket>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SocketHubOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sockets.size;
  }

  start(): void {
    this.#timer = setInterval(() => {
      // After a stall of the process, answers that have arrived are read first.
      setImmediate(() => {
        for (const socket of this.#sockets) socket.checkAlive();
      });
    }, this.#options.pingIntervalMs).unref();
  }

  get limits(): ConnectionLimits {
    return this.#options;
  }

  /** Closes every WebSocket that ends at this process. */
  closeAll(code: number, reason: string): void {
    clearInterval(this.#timer);
    for (const socket of this.#sockets) socket.close(code, reason);
  }

  addSocket(socket: LocalSocket): void {
    this.#sockets.add(socket);
  }

  removeSocket(socket: LocalSocket): void {
    this.#sockets.delete(socket);
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

  /** A connection of the instance: it counts until it is removed. */
  add(group: ConnectionGroup): void {
    group.size += 1;
  }

  remove(group: ConnectionGroup): void {
    group.size -= 1;
    this.releaseIfUnused(group);
  }

  /** Deletes a group without connections whose instance is not in memory. */
  releaseIfUnused(group: ConnectionGroup): void {
    if (group.size === 0 && group.outputs === null && this.#groups.get(group.key) === group)
      this.#groups.delete(group.key);
  }
}

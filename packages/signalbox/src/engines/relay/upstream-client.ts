/** Sends calls upstream over kept-alive connections, one pool an origin. */
import { isPrivateHost } from "../ip-address/index.ts";
import { Connection, type ConnectionOwner, type UpstreamTimeouts } from "./connection.ts";
import type { Origin } from "./origin.ts";
import {
  UpstreamCall,
  type UpstreamExchange,
  type UpstreamHandler,
  type UpstreamRequest,
} from "./upstream-call.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** Idle connections kept for one origin; beyond it the one just freed is closed. */
const MAX_IDLE = 256;

export class UpstreamClient {
  readonly #timeouts: UpstreamTimeouts;
  readonly #pools = new Map<string, OriginPool>();
  #isClosed = false;

  constructor(timeouts: UpstreamTimeouts) {
    this.#timeouts = timeouts;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamExchange {
    const call = new UpstreamCall(request, handler);
    const { origin } = request;
    if (this.#isClosed) {
      queueMicrotask(() => call.fail(new UpstreamFailure("unreachable", "the gateway is stopping")));
      return call;
    }
    if (!origin.mayBePrivate && isPrivateHost(origin.hostname)) {
      // A literal address is never looked up, so the look-up's filter does not see it.
      queueMicrotask(() => call.fail(new UpstreamFailure("unreachable", "the address is not public")));
      return call;
    }
    let pool = this.#pools.get(origin.key);
    if (pool === undefined) {
      pool = new OriginPool(origin, this.#timeouts, () => this.#pools.delete(origin.key));
      this.#pools.set(origin.key, pool);
    }
    pool.send(call);
    return call;
  }

  /** Closes every connection; calls that still run fail. */
  close(): void {
    this.#isClosed = true;
    for (const pool of this.#pools.values()) pool.close();
  }
}

class OriginPool implements ConnectionOwner {
  readonly timeouts: UpstreamTimeouts;
  session: Buffer | undefined;
  readonly #origin: Origin;
  readonly #onEmpty: () => void;
  readonly #all = new Set<Connection>();
  /** Last in, first out: the connection used most recently is the least likely to have been closed. */
  readonly #idle: Connection[] = [];

  constructor(origin: Origin, timeouts: UpstreamTimeouts, onEmpty: () => void) {
    this.#origin = origin;
    this.timeouts = timeouts;
    this.#onEmpty = onEmpty;
  }

  send(call: UpstreamCall): void {
    // A body that can be sent only once does not risk a connection that may be dead.
    const pooled = call.request.body.kind === "streamed" ? undefined : this.#idle.pop();
    (pooled ?? this.#open()).send(call);
  }

  resend(call: UpstreamCall): void {
    this.#open().send(call);
  }

  onIdle(connection: Connection): void {
    if (this.#idle.length >= MAX_IDLE) connection.destroy();
    else this.#idle.push(connection);
  }

  onClosed(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    if (this.#all.size === 0) this.#onEmpty();
  }

  close(): void {
    for (const connection of this.#all) connection.destroy();
  }

  #open(): Connection {
    const connection = new Connection(this, this.#origin);
    this.#all.add(connection);
    return connection;
  }
}

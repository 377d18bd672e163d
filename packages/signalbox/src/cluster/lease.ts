/**
 * How long this node may answer from memory without asking anybody.
 *
 * A lease begins when a heartbeat was *sent* whose answer shows that memory has every committed write. Until its end no other node
 * declares this one dead, so no other node has answered a write that this one has not received.
 *
 * Invariants:
 * 1. A process that was paused finds its lease old: it waits for the next heartbeat before it answers. If it was declared dead meanwhile, it first
 *    joins again and reads everything.
 * 2. Once an attempt to reach the database has failed, or a request has waited for `MAX_WAIT_MS`, requests are answered from memory for
 *    `maxStaleMs`, and refused afterwards.
 *
 * Two clocks measure the age, and the older result counts: the monotonic clock of a virtual machine may stop with the machine, and the wall
 * clock may be set back.
 */
import { SignalboxError } from "@signalbox/protocol";

/** Of the time after which a node is declared dead: the clocks of this machine and of PostgreSQL may run at slightly different rates. */
const LEASE_PART = 0.8;

/** Much longer than a heartbeat takes, or a join: a server that needs longer counts as one that cannot be reached. */
const MAX_WAIT_MS = 5000;

export interface LeaseOptions {
  /** Setting `cluster.maxStaleMs`. */
  readonly maxStaleMs: number;
  /** Setting `cluster.deadAfterMs`. */
  readonly deadAfterMs: number;
}

export class Lease {
  readonly #maxStaleMs: number;
  readonly #lengthMs: number;
  #sentAt = -Infinity;
  #sentTime = -Infinity;
  /** Resolves with the next renewal or failure. */
  #renewal: PromiseWithResolvers<void> | null = null;
  /** An attempt to reach the database has failed since the last renewal. */
  #isUnreachable = false;

  constructor({ maxStaleMs, deadAfterMs }: LeaseOptions) {
    this.#maxStaleMs = maxStaleMs;
    this.#lengthMs = deadAfterMs * LEASE_PART;
  }

  /** `sentAt`: by the monotonic clock. */
  renew(sentAt: number): void {
    if (sentAt <= this.#sentAt) return;
    this.#sentAt = sentAt;
    this.#sentTime = Date.now() - (performance.now() - sentAt);
    if (this.ageMs > this.#lengthMs) return;
    this.#isUnreachable = false;
    this.#settle();
  }

  reportUnreachable(): void {
    this.#isUnreachable = true;
    this.#settle();
  }

  #settle(): void {
    this.#renewal?.resolve();
    this.#renewal = null;
  }

  get ageMs(): number {
    return Math.max(performance.now() - this.#sentAt, Date.now() - this.#sentTime);
  }

  get isFresh(): boolean {
    return this.ageMs <= this.#lengthMs;
  }

  /**
   * Called before a request is authenticated. Null if it may go on at once; otherwise it may go on when the promise resolves. Rejects with
   * `node_stale` if memory is too old.
   */
  check(): Promise<void> | null {
    if (this.isFresh) return null;
    if (this.#isUnreachable && this.ageMs <= this.#maxStaleMs) return null;
    return this.#wait();
  }

  async #wait(): Promise<void> {
    const timer = setTimeout(() => this.reportUnreachable(), MAX_WAIT_MS);
    while (!this.isFresh && !this.#isUnreachable) {
      this.#renewal ??= Promise.withResolvers<void>();
      await this.#renewal.promise;
    }
    clearTimeout(timer);
    if (this.ageMs > this.#maxStaleMs)
      throw new SignalboxError("node_stale", { headers: { "retry-after": "5" } });
  }
}

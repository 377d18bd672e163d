/**
 * How long this node may answer from memory without a query.
 *
 * A lease begins when a heartbeat was *sent* whose answer shows that memory has every committed write. Until its end no other node
 * declares this one dead, so no other node has answered a write that this one has not received.
 *
 * Invariants:
 * 1. A process that was paused finds its lease old: it waits for the next heartbeat before it answers. If it was declared dead meanwhile, it first
 *    joins again and reads everything.
 * 2. Once an attempt to reach the database has failed, or a request has waited for `MAX_WAIT_MS`, requests are answered from memory for
 *    `maxStaleMs`, and refused afterwards.
 * 3. Only a heartbeat begins a lease. A read shows that memory is up to date, and not that the node lives: it postpones the end of `maxStaleMs`.
 * 4. A node that learns that it was declared dead has no lease from then on, whatever its clocks say.
 *
 * Two clocks measure the age, and the older result counts: the monotonic clock of a virtual machine may stop with the machine, and the wall
 * clock may be set back. If both stop, the machine cannot notice its pause: its next heartbeat, half a second later, ends the lease.
 */
import { SignalboxError } from "@signalbox/protocol";
import { AwakeClock, afterAwakeTime } from "../core/awake-time.ts";

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

/** A time of both clocks. */
interface Moment {
  readonly at: number;
  readonly time: number;
}

const NEVER: Moment = { at: -Infinity, time: -Infinity };

export class Lease {
  readonly #maxStaleMs: number;
  readonly #lengthMs: number;
  /** When the last heartbeat was sent. */
  #beaten = NEVER;
  /** When memory had every committed write. */
  #known = NEVER;
  readonly #awake = new AwakeClock();
  /** When this was learned, by the clock that does not count pauses. */
  #knownAwake = -Infinity;
  /** Heartbeats that were sent before count no more. */
  #endedAt = -Infinity;
  /** Resolves with the next renewal or failure. */
  #renewal: PromiseWithResolvers<void> | null = null;
  /** An attempt to reach the database has failed since the last renewal, or it cannot store heartbeats. */
  #isUnreachable = false;

  constructor({ maxStaleMs, deadAfterMs }: LeaseOptions) {
    this.#maxStaleMs = maxStaleMs;
    this.#lengthMs = deadAfterMs * LEASE_PART;
  }

  /** A heartbeat was acknowledged. `sentAt`: by the monotonic clock. */
  renew(sentAt: number): void {
    if (sentAt <= Math.max(this.#beaten.at, this.#endedAt)) return;
    this.#beaten = momentOf(sentAt);
    this.#known = this.#beaten;
    this.#knownAwake = this.#awake.now();
    if (!this.isFresh) return;
    this.#isUnreachable = false;
    this.#settle();
  }

  /** The database was read in place of a heartbeat, which it cannot store. */
  recordRead(sentAt: number): void {
    if (sentAt <= this.#known.at) return;
    this.#known = momentOf(sentAt);
    this.#knownAwake = this.#awake.now();
    this.reportUnreachable();
  }

  reportUnreachable(): void {
    this.#isUnreachable = true;
    this.#settle();
  }

  /** The database answers again; the next heartbeat shows whether memory is up to date. */
  reportReachable(): void {
    this.#isUnreachable = false;
  }

  /** This node was declared dead. */
  end(): void {
    this.#endedAt = performance.now();
    this.#beaten = NEVER;
  }

  #settle(): void {
    this.#renewal?.resolve();
    this.#renewal = null;
  }

  get isFresh(): boolean {
    return ageOf(this.#beaten) <= this.#lengthMs;
  }

  /**
   * How long this node has not reached the database, once its lease is over and an attempt has failed; 0 otherwise. Its own pauses do not count: after
   * one it may reach the database at once, and what has arrived meanwhile can wait for that.
   */
  get cutOffMs(): number {
    const silentMs = this.#awake.now() - this.#knownAwake;
    return this.#isUnreachable && silentMs > this.#lengthMs ? silentMs : 0;
  }

  /**
   * Called before a request is authenticated. Null if it may go on at once; otherwise it may go on when the promise resolves. Rejects with
   * `node_stale` if memory is too old.
   */
  check(): Promise<void> | null {
    if (this.isFresh) return null;
    if (this.#isUnreachable && ageOf(this.#known) <= this.#maxStaleMs) return null;
    return this.#wait();
  }

  async #wait(): Promise<void> {
    // Of awake time: after a pause the answer to a heartbeat may be there already.
    const cancel = afterAwakeTime(MAX_WAIT_MS, () => this.reportUnreachable());
    while (!this.isFresh && !this.#isUnreachable) {
      this.#renewal ??= Promise.withResolvers<void>();
      await this.#renewal.promise;
    }
    cancel();
    if (ageOf(this.#known) > this.#maxStaleMs)
      throw new SignalboxError("node_stale", { headers: { "retry-after": "5" } });
  }
}

function momentOf(at: number): Moment {
  return { at, time: Date.now() - (performance.now() - at) };
}

function ageOf({ at, time }: Moment): number {
  return Math.max(performance.now() - at, Date.now() - time);
}

/**
 * Deliveries whose senders were answered 202 because the instance was slow: stored before the answer, and delivered to their instances until
 * those have handled them, also after a restart.
 *
 *   stored, first attempt in the intake ─ handled, or refused by the agent → deleted
 *             └ failed → waiting → next attempt → … → given up (after MAX_ATTEMPTS), until an operator decides
 *
 * Invariants:
 * 1. `store` resolves when the delivery is durable. The row is deleted only when the instance has the delivery in its ledger or the agent has
 *    refused it permanently. A row that outlives its delivery does no harm: the instance's ledger recognises the duplicate.
 * 2. An instance has one attempt at a time, the oldest due delivery first; a delivery that fails does not block the next one. An instance that
 *    hangs blocks no other instance.
 * 3. The number and the bytes of rows are limited. Beyond the limits senders get 503.
 * 4. In a cluster, a node takes a delivery before it attempts it, for `LEASE_MS`: the others leave it alone. A node that stops gives its rows back, and
 *    rows of a node that is gone are taken at once. Two nodes may attempt two deliveries of one instance at the same time.
 * 5. A failing database delays attempts; each failure is followed by a pause.
 * See docs/decisions/0084.
 */
import type { DeliveryOutcome } from "../agents/index.ts";
import type { NodeNetwork } from "../contracts/node-network.ts";
import { clearTimer, type Clock, setTimer, type Timer } from "../core/clock.ts";
import { overloaded } from "../core/overload.ts";
import { fullJitterDelay } from "../core/retry.ts";
import { WriteTogether } from "../core/write-together.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { LateDelivery, LateDeliveryState, LateDeliveryTable } from "./late-delivery-table.ts";
import { findVerdict, shortMessage } from "./late-verdict.ts";

/** About four minutes in all. A sender that was answered 202 does not try again. */
const MAX_ATTEMPTS = 8;
const BACKOFF = { baseDelayMs: 1000, maxDelayMs: 120_000 };
/** After a failure that is not the delivery's: overload, or a failing database. */
const PAUSE_MS = 1000;
/** When the source or the agent does not exist, which only an operator can change. A restart tries at once. */
const ABSENCE_PAUSE_MS = 60 * 60 * 1000;
/** Instances with an attempt at the same time. */
const MAX_ATTEMPTING = 16;
/** Longer than a delivery takes at most. */
const LEASE_MS = 60_000;
/** How often a node of a cluster looks for rows of the others. */
const LOOK_MS = 5000;
/** Far more than can be in flight, so that the limit is reached only when handlers fail for a long time. */
const MAX_ROWS = 10_000;
const MAX_BYTES = 256 * 1024 * 1024;

export interface LateDeliveriesParts {
  readonly table: LateDeliveryTable;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The nodes that attempt deliveries of the same table; null for a process that is alone. */
  readonly nodes: Pick<NodeNetwork, "self" | "members" | "onChange"> | null;
  /** Delivers to the instance. */
  deliver(delivery: LateDelivery): Promise<DeliveryOutcome>;
}

type Stored = Pick<LateDeliveryState, "id" | "accountId" | "agent" | "instance" | "bodyBytes">;

export class LateDeliveries {
  readonly #parts: LateDeliveriesParts;
  /** Attempts in progress by instance, here or in the intake. */
  readonly #busy = new Map<string, number>();
  readonly #storing = new WriteTogether((deliveries: readonly LateDelivery[]) => this.#insert(deliveries));
  #removing: Stored[] = [];
  #removal: Promise<void> = Promise.resolve();
  #count = 0;
  #bytes = 0;
  #attempting = 0;
  #isStarting = false;
  /** Instances with an attempt that ended while due rows were read; null when none are read. */
  #ended: Set<string> | null = null;
  #startsAgain = false;
  #isStopped = false;
  #timer: Timer | undefined;
  #lookTimer: NodeJS.Timeout | undefined;
  #ignoreNodes: () => void = () => undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(parts: LateDeliveriesParts) {
    this.#parts = parts;
  }

  /** Number of rows. */
  get count(): number {
    return this.#count;
  }

  async start(): Promise<void> {
    const { table, clock, nodes } = this.#parts;
    if (nodes !== null) {
      // A node may be gone now that has left rows.
      this.#ignoreNodes = nodes.onChange(() => this.#startAttempts());
      await this.#look();
      return;
    }
    const { count, bytes } = await table.totals();
    this.#count += count;
    this.#bytes += bytes;
    if (count === 0) return;
    await table.hasten(clock.now());
    this.#startAttempts();
  }

  /** Other nodes add and delete rows, and may be lost before they have attempted theirs. */
  async #look(): Promise<void> {
    const { table } = this.#parts;
    try {
      const { count, bytes } = await table.totals();
      this.#count = count;
      this.#bytes = bytes;
      if (count > 0) this.#startAttempts();
    } catch (error) {
      this.#pause(error);
    }
    if (this.#isStopped) return;
    // It never rejects.
    this.#lookTimer = setTimeout(() => void this.#look(), LOOK_MS * (0.5 + Math.random())).unref();
  }

  /** Attempts in progress are left to the next process, or to the other nodes. */
  async stop(): Promise<void> {
    const { table, clock, nodes, logger } = this.#parts;
    this.#isStopped = true;
    clearTimer(this.#timer);
    clearTimeout(this.#lookTimer);
    this.#ignoreNodes();
    this.#writeRemoved();
    await this.#removal;
    if (nodes === null || this.#busy.size === 0) return;
    await table
      .giveBack(nodes.self, clock.now())
      // The others find the rows when this node has left.
      .catch((err: unknown) => logger.warn({ err }, "late webhook deliveries could not be given back"));
  }

  /** Resolves when the delivery is durable; the caller must then call `settle` or `takeBack`. */
  store(delivery: LateDelivery): Promise<void> {
    const size = delivery.body.length;
    if (this.#isStopped || this.#count >= MAX_ROWS || this.#bytes + size > MAX_BYTES) {
      return Promise.reject(overloaded());
    }
    this.#count += 1;
    this.#bytes += size;
    this.#take(delivery);
    return this.#storing.add(delivery).catch((error: unknown) => {
      this.#forget(size);
      this.#leave(delivery);
      throw error;
    });
  }

  /** `attempt` is the first attempt of a stored delivery, which the intake has started. */
  settle(delivery: LateDelivery, attempt: Promise<DeliveryOutcome>): void {
    const state = {
      ...delivery,
      bodyBytes: delivery.body.length,
      attempts: 0,
      nextAttemptAt: 0,
      lastError: null,
    };
    this.#settle(state, attempt).catch((error: unknown) => this.#pause(error));
  }

  /** Deletes a stored delivery whose sender was not answered 202. */
  takeBack(delivery: LateDelivery): void {
    this.#remove({ ...delivery, bodyBytes: delivery.body.length });
  }

  /** Schedules a delivery that was given up; false when there is none. */
  async revive(accountId: string, id: string): Promise<boolean> {
    const isRevived = await this.#parts.table.revive(accountId, id, this.#parts.clock.now());
    if (isRevived) this.#startAttempts();
    return isRevived;
  }

  /** Deletes a delivery that was given up; false when there is none. */
  async drop(accountId: string, id: string): Promise<boolean> {
    const found = await this.#parts.table.find(accountId, id);
    if (found === undefined || found.nextAttemptAt !== null) return false;
    await this.#parts.table.remove([id]);
    this.#forget(found.bodyBytes);
    return true;
  }

  #insert(deliveries: readonly LateDelivery[]): Promise<void> {
    const { table, clock, nodes } = this.#parts;
    // The first attempt is in progress.
    const nextAttemptAt = clock.now() + (nodes === null ? 0 : LEASE_MS);
    return table.insert(deliveries, nextAttemptAt, nodes?.self ?? null);
  }

  /** Starts attempts of due deliveries whose instances have none in progress, up to the limit. */
  #startAttempts(): void {
    if (this.#isStopped) return;
    this.#startsAgain = this.#isStarting;
    if (this.#isStarting) return;
    this.#isStarting = true;
    this.#startDue().then(
      () => {
        this.#isStarting = false;
        if (this.#startsAgain) this.#startAttempts();
      },
      (error: unknown) => {
        this.#isStarting = false;
        this.#pause(error);
      },
    );
  }

  async #startDue(): Promise<void> {
    const { table, clock, nodes } = this.#parts;
    const now = clock.now();
    // Rows that name this node and are not attempted are left over from a failure of the database.
    const others = nodes?.members.flatMap(({ inc }) => (inc === nodes.self ? [] : inc)) ?? null;
    // Deliveries of busy instances are skipped and must not use up the limit.
    const ended = new Set<string>();
    this.#ended = ended;
    const due = await table
      .due(now, MAX_ATTEMPTING + this.#busy.size, others)
      .finally(() => (this.#ended = null));
    for (const state of due) {
      if (this.#isStopped || this.#attempting >= MAX_ATTEMPTING) return;
      // A row that was read before its attempt ended still looks due. The end of the attempt starts another read.
      if (this.#busy.has(keyOf(state)) || ended.has(keyOf(state))) continue;
      this.#take(state);
      this.#attempting += 1;
      this.#attempt(state).then(
        () => {
          this.#attempting -= 1;
          this.#startAttempts();
        },
        (error: unknown) => {
          this.#attempting -= 1;
          this.#pause(error);
        },
      );
    }
    const next = await table.nextAfter(now);
    if (next !== null) this.#wakeBy(next);
  }

  async #attempt(state: LateDeliveryState): Promise<void> {
    const { table, deliver, clock, nodes } = this.#parts;
    const isTaken =
      nodes === null ||
      (await this.#unlessFailed(state, table.take(state, clock.now() + LEASE_MS, nodes.self)));
    if (!isTaken) {
      this.#leave(state);
      return;
    }
    const body = await this.#unlessFailed(state, table.body(state.id));
    if (body === undefined) this.#leave(state);
    else await this.#settle(state, deliver({ ...state, body }));
  }

  /** The row is found again if the database fails. */
  #unlessFailed<T>(state: LateDeliveryState, query: Promise<T>): Promise<T> {
    return query.catch((error: unknown) => {
      this.#leave(state);
      throw error;
    });
  }

  /** Called after the row is stored. Rejects when the database fails; the row is then found again. */
  async #settle(state: LateDeliveryState, attempt: Promise<DeliveryOutcome>): Promise<void> {
    const { table, clock, logger } = this.#parts;
    const verdict = await findVerdict(attempt);
    const about = { delivery: state.id, source: state.source, agent: state.agent, instance: state.instance };
    switch (verdict.kind) {
      case "handled":
        this.#remove(state);
        return;
      case "refused":
        logger.warn(
          { ...about, err: verdict.error },
          "the agent refused a webhook delivery whose sender was answered 202; the delivery is dropped",
        );
        this.#remove(state);
        return;
      case "absent":
      case "postponed":
      case "failed": {
        if (this.#isStopped) return;
        const attempts = state.attempts + (verdict.kind === "failed" ? 1 : 0);
        const isOver = attempts >= MAX_ATTEMPTS;
        const pauseMs = verdict.kind === "absent" ? ABSENCE_PAUSE_MS : PAUSE_MS;
        const delayMs = verdict.kind === "failed" ? PAUSE_MS + fullJitterDelay(attempts, BACKOFF) : pauseMs;
        const next = isOver ? null : Math.ceil(clock.now() + delayMs);
        if (isOver)
          logger.error(
            { ...about, err: verdict.error },
            "all attempts to deliver a webhook failed whose sender was answered 202; replay or drop it as a late delivery",
          );
        else if (verdict.kind === "absent")
          logger.warn(
            { ...about, err: verdict.error },
            "a webhook delivery whose sender was answered 202 waits for its source or agent, which does not exist",
          );
        try {
          await table.postpone(state.id, attempts, next, shortMessage(verdict.error));
        } finally {
          this.#leave(state);
        }
        if (next !== null) this.#wakeBy(next);
      }
    }
  }

  /** Deletions of one turn of the event loop share a transaction; the instance stays busy until the row is deleted. */
  #remove(state: Stored): void {
    if (this.#removing.length === 0) setImmediate(() => this.#writeRemoved());
    this.#removing.push(state);
  }

  #writeRemoved(): void {
    const removing = this.#removing;
    if (removing.length === 0) return;
    this.#removing = [];
    this.#removal = this.#parts.table.remove(removing.map(({ id }) => id)).then(
      () => {
        for (const state of removing) {
          this.#forget(state.bodyBytes);
          this.#leave(state);
        }
        this.#startAttempts();
      },
      (error: unknown) => {
        // The rows are found again; their instances recognise the duplicates.
        for (const state of removing) this.#leave(state);
        this.#pause(error);
      },
    );
  }

  #take(delivery: Pick<LateDelivery, "accountId" | "agent" | "instance">): void {
    const key = keyOf(delivery);
    this.#busy.set(key, (this.#busy.get(key) ?? 0) + 1);
  }

  #leave(delivery: Pick<LateDelivery, "accountId" | "agent" | "instance">): void {
    const key = keyOf(delivery);
    this.#ended?.add(key);
    const count = (this.#busy.get(key) ?? 1) - 1;
    if (count === 0) this.#busy.delete(key);
    else this.#busy.set(key, count);
  }

  #forget(bytes: number): void {
    this.#count -= 1;
    this.#bytes -= bytes;
  }

  #pause(error: unknown): void {
    if (this.#isStopped) return;
    this.#parts.logger.warn(
      { err: error },
      "late webhook deliveries cannot be read or written; trying again",
    );
    this.#wakeBy(this.#parts.clock.now() + PAUSE_MS);
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakeAt || this.#isStopped) return;
    this.#wakeAt = at;
    clearTimer(this.#timer);
    const attempt = () => {
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.#startAttempts();
    };
    const { clock } = this.#parts;
    this.#timer = setTimer(clock, attempt, at - clock.now());
  }
}

function keyOf({
  accountId,
  agent,
  instance,
}: Pick<LateDelivery, "accountId" | "agent" | "instance">): string {
  return `${accountId}\0${agent}\0${instance}`;
}

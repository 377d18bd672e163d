/**
 * Deliveries whose senders were answered 202 because the instance took too long: stored before the answer, handed to their instances until
 * those have handled them, also by the next process.
 *
 *   stored, in hand of the intake ─ handled or refused by the agent → gone
 *             └ failed → waits → in hand again → … → given up (after MAX_ATTEMPTS), until a person decides
 *
 * Invariants:
 * 1. `store` resolves when the delivery is on stable storage, and the row goes only when the instance has the delivery in its ledger or the
 *    agent has refused it for good. A copy of a delivery that was handled is a duplicate to the instance: nothing runs twice because of a
 *    row that is still there.
 * 2. One delivery of an instance at a time, the oldest that is due first; one that fails lets the next pass. An instance that hangs holds up
 *    nobody else.
 * 3. Rows are bounded in number and bytes. When there is no room, nothing more is accepted this way: senders get 503.
 * 4. A database that fails delays things; each of its failures is followed by a pause.
 */
import { type ErrorName, SignalboxError } from "@signalbox/protocol";
import type { DeliveryOutcome } from "../agents/index.ts";
import type { Clock } from "../core/clock.ts";
import { overloaded } from "../core/overload.ts";
import { fullJitterDelay } from "../core/retry.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { LateDelivery, LateDeliveryState, LateDeliveryTable } from "./late-delivery-table.ts";

/** About four minutes in all: senders that are told 202 do not try again, so this is all the patience there is for a handler that fails. */
const MAX_ATTEMPTS = 8;
const BACKOFF = { baseDelayMs: 1000, maxDelayMs: 120_000 };
/** After a refusal that says nothing about the delivery: no room, a database that fails. */
const PAUSE_MS = 1000;
/** For what only an operator can change: a source or an agent that is not there any more. A restart tries at once. */
const ABSENCE_PAUSE_MS = 60 * 60 * 1000;
/** Instances worked for at once. */
const MAX_AT_WORK = 16;
/** Far more than can be in flight, so that it is reached only when handlers fail for long. */
const MAX_ROWS = 10_000;
const MAX_BYTES = 256 * 1024 * 1024;
const MAX_ERROR_LENGTH = 500;
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface LateDeliveriesParts {
  readonly table: LateDeliveryTable;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Hands it to its instance. */
  deliver(delivery: LateDelivery): Promise<DeliveryOutcome>;
}

type Stored = Pick<LateDeliveryState, "id" | "accountId" | "agent" | "instance" | "bodyBytes">;

interface Storing {
  readonly delivery: LateDelivery;
  resolve(): void;
  reject(error: unknown): void;
}

export class LateDeliveries {
  readonly #parts: LateDeliveriesParts;
  /** How many deliveries of an instance are in hand, here or in the intake. */
  readonly #busy = new Map<string, number>();
  #storing: Storing[] = [];
  #removing: Stored[] = [];
  #removal: Promise<void> = Promise.resolve();
  #count = 0;
  #bytes = 0;
  #atWork = 0;
  #isLooking = false;
  #looksAgain = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(parts: LateDeliveriesParts) {
    this.#parts = parts;
  }

  /** Rows there are. */
  get count(): number {
    return this.#count;
  }

  async start(): Promise<void> {
    const { table, clock } = this.#parts;
    const { count, bytes } = await table.totals();
    this.#count += count;
    this.#bytes += bytes;
    if (count === 0) return;
    await table.hasten(clock.now());
    this.#look();
  }

  /** What is in hand is left to the next process. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#removal;
  }

  /** Resolves when it is on stable storage; `settle` must be called then, when the attempt under way has ended. */
  store(delivery: LateDelivery): Promise<void> {
    const size = delivery.body.length;
    if (this.#isStopped || this.#count >= MAX_ROWS || this.#bytes + size > MAX_BYTES) {
      return Promise.reject(overloaded());
    }
    this.#count += 1;
    this.#bytes += size;
    this.#take(delivery);
    return new Promise((resolve, reject) => {
      // Those that come while this turn of the event loop lasts share one transaction.
      if (this.#storing.length === 0) setImmediate(() => this.#writeStored());
      this.#storing.push({ delivery, resolve, reject });
    });
  }

  /** How the first attempt at a stored delivery ended. */
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

  /** Its sender was answered otherwise: it is not accepted after all. */
  takeBack(delivery: LateDelivery): void {
    this.#remove({ ...delivery, bodyBytes: delivery.body.length });
  }

  /** Tries one that was given up again; false when there is none. */
  async revive(accountId: string, id: string): Promise<boolean> {
    const isRevived = await this.#parts.table.revive(accountId, id, this.#parts.clock.now());
    if (isRevived) this.#look();
    return isRevived;
  }

  /** Drops one that was given up; false when there is none. */
  async drop(accountId: string, id: string): Promise<boolean> {
    const found = await this.#parts.table.find(accountId, id);
    if (found === undefined || found.nextAttemptAt !== null) return false;
    await this.#parts.table.remove([id]);
    this.#forget(found.bodyBytes);
    return true;
  }

  #writeStored(): void {
    const storing = this.#storing;
    this.#storing = [];
    const { table, clock } = this.#parts;
    table
      .insert(
        storing.map(({ delivery }) => delivery),
        clock.now(),
      )
      .then(
        () => {
          for (const { resolve } of storing) resolve();
        },
        (error: unknown) => {
          for (const { delivery, reject } of storing) {
            this.#forget(delivery.body.length);
            this.#leave(delivery);
            reject(error);
          }
        },
      );
  }

  /** Starts what is due and not in hand, as far as there is room. */
  #look(): void {
    if (this.#isStopped) return;
    this.#looksAgain = this.#isLooking;
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#startDue().then(
      () => {
        this.#isLooking = false;
        if (this.#looksAgain) this.#look();
      },
      (error: unknown) => {
        this.#isLooking = false;
        this.#pause(error);
      },
    );
  }

  async #startDue(): Promise<void> {
    const { table, clock } = this.#parts;
    const now = clock.now();
    // Those of busy instances are passed over, so they must not use up the limit.
    const due = await table.due(now, MAX_AT_WORK + this.#busy.size);
    for (const state of due) {
      if (this.#isStopped || this.#atWork >= MAX_AT_WORK) return;
      if (this.#busy.has(keyOf(state))) continue;
      this.#take(state);
      this.#atWork += 1;
      this.#attempt(state).then(
        () => {
          this.#atWork -= 1;
          this.#look();
        },
        (error: unknown) => {
          this.#atWork -= 1;
          this.#pause(error);
        },
      );
    }
    const next = await table.nextAfter(now);
    if (next !== null) this.#wakeBy(next);
  }

  async #attempt(state: LateDeliveryState): Promise<void> {
    const { table, deliver } = this.#parts;
    const body = await table.body(state.id).catch((error: unknown) => {
      this.#leave(state);
      throw error;
    });
    if (body === undefined) this.#leave(state);
    else await this.#settle(state, deliver({ ...state, body }));
  }

  /** Never before the row is stored. Rejects when the database fails; the row is then found again. */
  async #settle(state: LateDeliveryState, attempt: Promise<DeliveryOutcome>): Promise<void> {
    const { table, clock, logger } = this.#parts;
    const verdict = await judge(attempt);
    const about = { delivery: state.id, source: state.source, agent: state.agent, instance: state.instance };
    switch (verdict.kind) {
      case "handled":
        this.#remove(state);
        return;
      case "refused":
        logger.warn(
          { ...about, err: verdict.error },
          "a delivery that had been accepted was refused by its agent",
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
            "a delivery that had been accepted used up its attempts",
          );
        else if (verdict.kind === "absent")
          logger.warn(
            { ...about, err: verdict.error },
            "a delivery that had been accepted waits for its source or agent",
          );
        try {
          await table.postpone(state.id, attempts, next, messageOf(verdict.error));
        } finally {
          this.#leave(state);
        }
        if (next !== null) this.#wakeBy(next);
      }
    }
  }

  /** Removals of one turn of the event loop share a transaction; the instance stays busy until its row is gone. */
  #remove(state: Stored): void {
    if (this.#removing.length === 0) setImmediate(() => this.#writeRemoved());
    this.#removing.push(state);
  }

  #writeRemoved(): void {
    const removing = this.#removing;
    this.#removing = [];
    this.#removal = this.#parts.table.remove(removing.map(({ id }) => id)).then(
      () => {
        for (const state of removing) {
          this.#forget(state.bodyBytes);
          this.#leave(state);
        }
        this.#look();
      },
      (error: unknown) => {
        // They are found again, and are duplicates to their instances then.
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
    this.#parts.logger.warn({ err: error }, "accepted deliveries cannot be read or written; trying again");
    this.#wakeBy(this.#parts.clock.now() + PAUSE_MS);
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakeAt || this.#isStopped) return;
    this.#wakeAt = at;
    clearTimeout(this.#timer);
    const delay = Math.max(0, Math.min(at - this.#parts.clock.now(), MAX_TIMER_MS));
    this.#timer = setTimeout(() => {
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.#look();
    }, delay).unref();
  }
}

/** They say nothing about the delivery. The successor of an instance that was destroyed takes it. */
const POSTPONING: ReadonlySet<ErrorName> = new Set([
  "overloaded",
  "stopping",
  "storage_unavailable",
  "agent_destroyed",
]);

type Verdict =
  | { readonly kind: "handled" }
  | { readonly kind: "refused" | "absent" | "postponed" | "failed"; readonly error: unknown };

async function judge(attempt: Promise<DeliveryOutcome>): Promise<Verdict> {
  try {
    const outcome = await attempt;
    if (outcome.kind !== "answered" || outcome.status < 300) return { kind: "handled" };
    const error = new Error(`the agent answered ${outcome.status}`);
    return { kind: outcome.status < 500 && outcome.status !== 429 ? "refused" : "failed", error };
  } catch (error) {
    if (!(error instanceof SignalboxError)) return { kind: "failed", error };
    if (POSTPONING.has(error.id)) return { kind: "postponed", error };
    if (error.id === "agent_not_found" || error.id === "webhook_unknown_source")
      return { kind: "absent", error };
    return { kind: error.status < 500 ? "refused" : "failed", error };
  }
}

function keyOf({
  accountId,
  agent,
  instance,
}: Pick<LateDelivery, "accountId" | "agent" | "instance">): string {
  return `${accountId}\0${agent}\0${instance}`;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, MAX_ERROR_LENGTH);
}

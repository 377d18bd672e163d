/**
 * The webhook deliveries that the instance has seen, so that a duplicate has no effect. Entries outlive what the agent itself stores of an
 * event, because a provider may redeliver days later.
 *
 * Entries are one B-tree, by period and id. A delivery is looked up in the current and in the previous period, so that each is remembered for
 * one to two periods. Older entries are deleted a few at a time.
 * See agents/README.md.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { sql } from "../../core/sql.ts";
import type { Transactions } from "../../engines/turn-runtime/index.ts";

/** Longer than any provider redelivers by itself (Stripe: 3 days). */
const PERIOD_MS = 30 * 24 * 60 * 60 * 1000;
/** Old entries are deleted with one new entry in 32, at random: an instance that is woken for each event has no counter in memory. */
const PRUNE_INTERVAL = 32;
/** Entries deleted at once: more than are added in between, and few enough not to delay the turn. */
const PRUNE_COUNT = 8 * PRUNE_INTERVAL;
const MAX_ID_LENGTH = 256;

export class DeliveryLedger {
  readonly #database: InstanceDatabase;
  readonly #transactions: Transactions;
  readonly #clock: Clock;
  /** No valid entry belongs to an earlier period. */
  #oldestPeriod = Number.POSITIVE_INFINITY;
  /** The current period, or the following one if the clock was set back; null until the table has been read. */
  #newestPeriod: number | null;

  constructor(database: InstanceDatabase, transactions: Transactions, clock: Clock) {
    this.#database = database;
    this.#transactions = transactions;
    this.#clock = clock;
    // A new instance has no entries to read.
    this.#newestPeriod = database.isNew ? 0 : null;
  }

  has(key: string): boolean {
    const id = toId(key);
    const period = this.#period();
    return this.#hasEarlier(id, period) || (this.#oldestPeriod <= period && this.#hasEntry(id, period));
  }

  /** Adds the delivery; returns false if it is there already. */
  addIfNew(key: string): boolean {
    const id = toId(key);
    const period = this.#period();
    if (this.#hasEarlier(id, period)) return false;
    this.#transactions.open();
    const { changes } = this.#database.run(
      sql`INSERT INTO _signalbox_delivery (period, id) VALUES (${period}, ${id}) ON CONFLICT DO NOTHING`,
    );
    this.#oldestPeriod = Math.min(this.#oldestPeriod, period);
    if (this.#oldestPeriod < period - 1 && Math.random() * PRUNE_INTERVAL < 1) this.#prune(period - 1);
    return changes === 1;
  }

  /** Removes an entry that the open transaction added. */
  remove(key: string): void {
    // The period may have changed since.
    const period = this.#period();
    this.#transactions.open();
    this.#database.run(
      sql`DELETE FROM _signalbox_delivery WHERE period IN (${period - 1}, ${period}) AND id = ${toId(key)}`,
    );
  }

  /** Never decreases: a clock that is set back must not hide entries. */
  #period(): number {
    const current = Math.floor(this.#clock.now() / PERIOD_MS);
    this.#newestPeriod = Math.max(this.#newestPeriod ?? this.#readPeriods(current + 1), current);
    return this.#newestPeriod;
  }

  /** Reads the oldest period, and returns the newest one up to `latest`: a clock that was once years ahead must not fix the period there. */
  #readPeriods(latest: number): number {
    this.#oldestPeriod = this.#readOldest();
    const newest = this.#database.get<{ period: number }>(
      sql`SELECT period FROM _signalbox_delivery WHERE period <= ${latest} ORDER BY period DESC LIMIT 1`,
    );
    return newest?.period ?? 0;
  }

  #hasEarlier(id: string, period: number): boolean {
    return this.#oldestPeriod < period && this.#hasEntry(id, period - 1);
  }

  #hasEntry(id: string, period: number): boolean {
    return (
      this.#database.get(
        sql`SELECT 1 AS found FROM _signalbox_delivery WHERE period = ${period} AND id = ${id}`,
      ) !== undefined
    );
  }

  #readOldest(): number {
    const first = this.#database.get<{ period: number }>(
      sql`SELECT period FROM _signalbox_delivery ORDER BY period LIMIT 1`,
    );
    return first?.period ?? Number.POSITIVE_INFINITY;
  }

  #prune(before: number): void {
    this.#database.run(
      sql`DELETE FROM _signalbox_delivery WHERE (period, id) IN
          (SELECT period, id FROM _signalbox_delivery WHERE period < ${before} ORDER BY period, id LIMIT ${PRUNE_COUNT})`,
    );
    // After a rollback the deleted entries exist again, but they are too old to be looked up.
    this.#oldestPeriod = this.#readOldest();
  }
}

function toId(key: string): string {
  return key.length <= MAX_ID_LENGTH ? key : createHash("sha256").update(key).digest("hex");
}

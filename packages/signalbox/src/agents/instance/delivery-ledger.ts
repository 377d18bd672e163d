/**
 * Which webhook deliveries the instance has seen, so that a copy does nothing. Entries outlive what the agent itself keeps about an
 * event, because a provider may send it again days later.
 *
 * Entries lie in one tree, by period and id. A delivery is looked for in the running period and in the one before, so that each is remembered for
 * one to two periods; what is older goes a few entries at a time.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { sql } from "../../core/sql.ts";
import type { Transactions } from "../../engines/turn-runtime/index.ts";

/** Longer than any provider redelivers (Stripe: 3 days; people pressing "redeliver": whenever). */
const PERIOD_MS = 30 * 24 * 60 * 60 * 1000;
/** Old entries are removed with one new one in so many, by chance: an instance that wakes for each event has no count to go by. */
const PRUNED_EACH = 32;
/** Removed at once: enough to keep up, too few to notice. */
const PRUNED_AT_ONCE = 8 * PRUNED_EACH;
const MAX_ID_LENGTH = 256;

export class DeliveryLedger {
  readonly #database: InstanceDatabase;
  readonly #transactions: Transactions;
  readonly #clock: Clock;
  /** No entry that counts is of an earlier period. */
  #oldestPeriod = Number.POSITIVE_INFINITY;
  /** The running period, or the one after it if the clock was set back; null until the ledger was looked at. */
  #newestPeriod: number | null;

  constructor(database: InstanceDatabase, transactions: Transactions, clock: Clock) {
    this.#database = database;
    this.#transactions = transactions;
    this.#clock = clock;
    // A new instance has seen nothing, and need not look.
    this.#newestPeriod = database.isNew ? 0 : null;
  }

  has(key: string): boolean {
    const id = idOf(key);
    const period = this.#period();
    return this.#isOfEarlier(id, period) || (this.#oldestPeriod <= period && this.#isOf(id, period));
  }

  /** Adds the delivery in one step with the look whether it is there; false if it is. */
  addIfNew(key: string): boolean {
    const id = idOf(key);
    const period = this.#period();
    if (this.#isOfEarlier(id, period)) return false;
    this.#transactions.open();
    const { changes } = this.#database.run(
      sql`INSERT INTO _signalbox_delivery (period, id) VALUES (${period}, ${id}) ON CONFLICT DO NOTHING`,
    );
    this.#oldestPeriod = Math.min(this.#oldestPeriod, period);
    if (this.#oldestPeriod < period - 1 && Math.random() * PRUNED_EACH < 1) this.#prune(period - 1);
    return changes === 1;
  }

  /** Takes an entry of the transaction that is still open out again. */
  remove(key: string): void {
    // The period may have ended since.
    const period = this.#period();
    this.#transactions.open();
    this.#database.run(
      sql`DELETE FROM _signalbox_delivery WHERE period IN (${period - 1}, ${period}) AND id = ${idOf(key)}`,
    );
  }

  /** Never an earlier one than before: a clock that is set back must not hide what was entered. */
  #period(): number {
    const current = Math.floor(this.#clock.now() / PERIOD_MS);
    this.#newestPeriod = Math.max(this.#newestPeriod ?? this.#look(current + 1), current);
    return this.#newestPeriod;
  }

  /** Learns what there is, and returns the newest period, up to `latest`: a clock that was years ahead must not keep the ledger there. */
  #look(latest: number): number {
    this.#oldestPeriod = this.#readOldest();
    const newest = this.#database.get<{ period: number }>(
      sql`SELECT period FROM _signalbox_delivery WHERE period <= ${latest} ORDER BY period DESC LIMIT 1`,
    );
    return newest?.period ?? 0;
  }

  #isOfEarlier(id: string, period: number): boolean {
    return this.#oldestPeriod < period && this.#isOf(id, period - 1);
  }

  #isOf(id: string, period: number): boolean {
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
          (SELECT period, id FROM _signalbox_delivery WHERE period < ${before} ORDER BY period, id LIMIT ${PRUNED_AT_ONCE})`,
    );
    // Should this be rolled back, those that are there again are looked for by nobody.
    this.#oldestPeriod = this.#readOldest();
  }
}

function idOf(key: string): string {
  return key.length <= MAX_ID_LENGTH ? key : createHash("sha256").update(key).digest("hex");
}

/**
 * Which webhook deliveries the instance has seen, so that a copy does nothing. Entries outlive what the agent itself keeps about an
 * event, because a provider may send it again days later.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { InstanceDatabase } from "../../storage/ports/instance-store.ts";
import { sql } from "../../storage/ports/sql.ts";
import type { Transactions } from "../turns/transactions.ts";

/** Longer than any provider redelivers (Stripe: 3 days; people pressing "redeliver": whenever). */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;
/** Old entries are looked for with one new one in so many, by chance: an instance that wakes for each event has no count to go by. */
const PRUNED_EACH = 32;
/** Removed at once: enough to keep up, too few to notice. */
const PRUNED_AT_ONCE = 8 * PRUNED_EACH;
const MAX_ID_LENGTH = 256;

export class DeliveryLedger {
  readonly #database: InstanceDatabase;
  readonly #transactions: Transactions;
  readonly #clock: Clock;
  /** A new instance has seen nothing, and need not look. */
  #isEmpty: boolean;

  constructor(database: InstanceDatabase, transactions: Transactions, clock: Clock) {
    this.#database = database;
    this.#transactions = transactions;
    this.#clock = clock;
    this.#isEmpty = database.isNew;
  }

  has(key: string): boolean {
    if (this.#isEmpty) return false;
    return (
      this.#database.get(sql`SELECT 1 AS found FROM _signalbox_delivery WHERE id = ${bounded(key)}`) !==
      undefined
    );
  }

  add(key: string): void {
    const now = this.#clock.now();
    this.#transactions.open();
    this.#isEmpty = false;
    this.#database.run(sql`INSERT INTO _signalbox_delivery (id, at) VALUES (${bounded(key)}, ${now})`);
    if (Math.random() * PRUNED_EACH < 1) this.#prune(now - KEPT_MS);
  }

  /** Entries are in order of arrival, so looking at the oldest tells whether any is old enough. */
  #prune(before: number): void {
    const oldest = this.#database.get<{ at: number }>(
      sql`SELECT at FROM _signalbox_delivery ORDER BY seq LIMIT 1`,
    );
    if (oldest === undefined || oldest.at >= before) return;
    this.#database.run(
      sql`DELETE FROM _signalbox_delivery WHERE seq IN
          (SELECT seq FROM _signalbox_delivery WHERE at < ${before} ORDER BY seq LIMIT ${PRUNED_AT_ONCE})`,
    );
  }
}

function bounded(key: string): string {
  return key.length <= MAX_ID_LENGTH ? key : createHash("sha256").update(key).digest("hex");
}

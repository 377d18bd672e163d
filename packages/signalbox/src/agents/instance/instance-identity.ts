/**
 * Writes down in a new instance's database whose it is: its file is named by a hash. That goes with the first transaction of the instance, since one
 * of its own would cost as much as everything else that most instances write when they are first touched.
 *
 * Invariant: whatever a database holds of an instance, it holds this as well. One that is created and never written to has it when it is closed.
 */
import type { InstanceDatabase, InstanceRef } from "../../storage/ports/instance-store.ts";
import { sql } from "../../storage/ports/sql.ts";
import { runOutsideTurns } from "../turns/current-turn.ts";
import type { Participant, Transactions } from "../turns/transactions.ts";

export class InstanceIdentity implements Participant {
  readonly #database: InstanceDatabase;
  readonly #transactions: Transactions;
  readonly #ref: InstanceRef;
  readonly #createdAt: number;
  #isMissing = true;

  /** For a database that is new. */
  constructor(database: InstanceDatabase, transactions: Transactions, ref: InstanceRef, createdAt: number) {
    this.#database = database;
    this.#transactions = transactions;
    this.#ref = ref;
    this.#createdAt = createdAt;
    transactions.join(this);
  }

  beforeCommit(): void {
    if (!this.#isMissing) return;
    const { agent, name } = this.#ref;
    this.#database.run(
      sql`INSERT INTO _signalbox_meta (key, value) VALUES ('agent', ${agent}), ('name', ${name}),
          ('created_at', ${String(this.#createdAt)})`,
    );
  }

  afterCommit(): void {
    this.#isMissing = false;
  }

  /** Before the last transaction ends. */
  require(): void {
    if (!this.#isMissing || this.#transactions.isOpen) return;
    try {
      runOutsideTurns(() => this.#transactions.open());
    } catch {
      // Storage has failed, and has said so; nothing was acknowledged that would miss this.
    }
  }
}

/**
 * Writes down in a new instance's database whose it is: its file is named by a hash. That goes with the first transaction of the instance, since one
 * of its own would cost as much as everything else that most instances write when they are first touched.
 *
 * Invariant: whatever a database holds of an instance, it holds this as well. One whose first turn writes nothing gets it when that turn ends, and so
 * before its answer leaves; one that has no turn, when it is closed.
 */
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { InstanceRef } from "./instance-ref.ts";
import { sql } from "../../core/sql.ts";
import { type Participant, runOutsideTurns, type Transactions } from "../../engines/turn-runtime/index.ts";

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
    const { account, agent, name } = this.#ref;
    this.#database.run(
      sql`INSERT INTO _signalbox_meta (key, value) VALUES ('account', ${account}), ('agent', ${agent}), ('name', ${name}),
          ('created_at', ${String(this.#createdAt)})`,
    );
  }

  afterCommit(): void {
    this.#isMissing = false;
  }

  /** Writes it unless it is written, or will be with the transaction that is open. */
  require(): void {
    if (!this.#isMissing || this.#transactions.isOpen) return;
    try {
      runOutsideTurns(() => this.#transactions.open());
    } catch {
      // Storage has failed, and has said so; nothing that would miss this is acknowledged any more.
    }
    this.#transactions.finish();
  }
}

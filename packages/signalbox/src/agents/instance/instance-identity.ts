/**
 * Stores the account, agent and name in the database of a new instance, because the file is named by a hash. The row is written with the first
 * transaction of the instance: a transaction of its own would cost as much as everything else that most instances write at first.
 *
 * Invariant: a database that holds anything of an instance holds its identity. If the first turn writes nothing, the identity is written
 * when that turn ends, before its outcome leaves; if there is no turn, when the database is closed.
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
  readonly #onStored: () => void;
  #isMissing = true;

  /** For a new database. Nothing is left to do once `onStored` has been called. */
  constructor(
    database: InstanceDatabase,
    transactions: Transactions,
    { ref, createdAt, onStored }: { ref: InstanceRef; createdAt: number; onStored: () => void },
  ) {
    this.#database = database;
    this.#transactions = transactions;
    this.#ref = ref;
    this.#createdAt = createdAt;
    this.#onStored = onStored;
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
    this.#transactions.leave(this);
    this.#onStored();
  }

  /** Writes the identity unless it is written, or will be with the open transaction. */
  require(): void {
    if (!this.#isMissing || this.#transactions.isOpen) return;
    try {
      runOutsideTurns(() => this.#transactions.open());
    } catch {
      // The failure of the storage has been reported; no output leaves any more.
    }
    this.#transactions.finish();
  }
}

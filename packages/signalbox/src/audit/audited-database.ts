/**
 * The database as handlers of management writes use it: the first transaction that commits during such a write also stores the claim of the
 * write. All other code passes through unchanged.
 */
import { currentWrite } from "../contracts/audit-trail.ts";
import type { SqlQuery } from "../core/sql.ts";
import type { Database, Queryable, ScanTurn, TransactionOptions } from "../database/database.ts";

export class AuditedDatabase implements Database {
  readonly #inner: Database;

  constructor(inner: Database) {
    this.#inner = inner;
  }

  get engine(): Database["engine"] {
    return this.#inner.engine;
  }

  get isShared(): boolean {
    return this.#inner.isShared ?? false;
  }

  onLoss(listener: () => void): void {
    this.#inner.onLoss?.(listener);
  }

  get problem(): string | null {
    return this.#inner.problem;
  }

  all<Row>(query: SqlQuery): Promise<Row[]> {
    return this.#inner.all<Row>(query);
  }

  scan<Row>(query: SqlQuery, turn: ScanTurn): Promise<Row[]> {
    return this.#inner.scan<Row>(query, turn);
  }

  get<Row>(query: SqlQuery): Promise<Row | undefined> {
    return this.#inner.get<Row>(query);
  }

  run(query: SqlQuery): Promise<{ changes: number }> {
    const write = currentWrite.getStore();
    if (write === undefined || write.isClaimed) return this.#inner.run(query);
    return this.transaction((tx) => tx.run(query));
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>, options?: TransactionOptions): Promise<T> {
    const write = currentWrite.getStore();
    if (write === undefined || write.isClaimed) return this.#inner.transaction(work, options);
    const result = await this.#inner.transaction(async (tx) => {
      const value = await work(tx);
      await write.claimIn(tx);
      return value;
    }, options);
    write.committed(false);
    return result;
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

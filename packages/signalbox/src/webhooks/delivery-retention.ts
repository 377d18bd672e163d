/**
 * Deletes deliveries beyond the number that is kept, of each kind.
 *
 * Invariants:
 * 1. The rows beyond are looked for outside of the event loop's thread, and once for every hundredth part of what is kept: between two looks there are at
 *    most so many more rows. Counting the kept rows with every write would cost more than the write.
 * 2. They are deleted by their ids, some in each transaction. One call deletes at most `AT_ONCE` of a kind: after a change of the setting a hundred thousand
 *    may be beyond.
 */
import type { DeliveryRecord } from "./delivery-record.ts";
import type { DeliveryTable, KeptKind } from "./delivery-table.ts";

const AT_ONCE = 1000;
/** A few milliseconds. */
const ROWS_PER_TRANSACTION = 50;

export class DeliveryRetention {
  readonly #table: DeliveryTable;
  readonly #keep: number;
  /** Since the last look. At the start the setting may be another one than before. */
  readonly #written: Record<KeptKind, number> = {
    succeeded: Number.POSITIVE_INFINITY,
    failed: Number.POSITIVE_INFINITY,
  };

  constructor(table: DeliveryTable, keep: number) {
    this.#table = table;
    this.#keep = keep;
  }

  written(records: readonly DeliveryRecord[]): void {
    for (const { status } of records) {
      if (status === "failed") this.#written.failed += 1;
      else if (status !== "rejected") this.#written.succeeded += 1;
    }
  }

  /** Returns false if there are more rows to delete. */
  async prune(): Promise<boolean> {
    const results = [await this.#pruneKind("succeeded"), await this.#pruneKind("failed")];
    return !results.includes(false);
  }

  async #pruneKind(kind: KeptKind): Promise<boolean> {
    if (this.#written[kind] <= this.#keep / 100) return true;
    const ids = await this.#table.surplus(kind, this.#keep, AT_ONCE);
    for (let i = 0; i < ids.length; i += ROWS_PER_TRANSACTION)
      await this.#table.remove(ids.slice(i, i + ROWS_PER_TRANSACTION));
    const isDone = ids.length < AT_ONCE;
    if (isDone) this.#written[kind] = 0;
    return isDone;
  }
}

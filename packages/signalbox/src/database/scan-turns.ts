/**
 * The turns of scans (`Database.scan`): reads that may visit many rows, of which one account may ask for hundreds at once.
 *
 * Invariants:
 * 1. At most `RUNNING` searches and as many pages run at a time in this process. On SQLite each has a thread; on PostgreSQL the other connections of the
 *    pool stay free for what requests of clients read and write.
 * 2. Accounts take turns: one that asks for a hundred scans delays another one by one of them. More than `MAX_WAITING` scans of an account are refused.
 * 3. A page never waits for a search.
 */
import { FairQueue } from "../core/fair-queue.ts";
import type { ScanTurn } from "./database.ts";

/** Of each kind. */
const RUNNING = 2;
/** Threads that are enough for all scans that run. */
export const MAX_SCANS: number = 2 * RUNNING;
/** Of one account and kind: many open dashboards. */
const MAX_WAITING = 100;

export class ScanTurns {
  readonly #queues = {
    page: new FairQueue(RUNNING, MAX_WAITING),
    search: new FairQueue(RUNNING, MAX_WAITING),
  };

  /** Throws `overloaded` if too many scans of the account wait. */
  run<T>({ account, kind }: ScanTurn, scan: () => Promise<T>): Promise<T> {
    return this.#queues[kind].run(account, scan);
  }
}

/** The queue, the dead letters and the schedules of one instance on its database. */
import type { Clock } from "../../core/clock.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { Transactions } from "../../engines/turn-runtime/index.ts";
import { DeadLetters } from "./dead-letters.ts";
import { Schedules } from "./schedules.ts";
import { WorkQueue } from "./work-queue.ts";
import { WorkTables } from "./work-tables.ts";

export interface InstanceWork {
  readonly workQueue: WorkQueue;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
}

/** Called in the transaction that changes rows. */
export interface WorkChanges {
  /** Of the queue or the schedules. */
  workChanged(): void;
  lettersChanged(): void;
}

export function openWork(
  database: InstanceDatabase,
  transactions: Pick<Transactions, "open" | "join">,
  clock: Clock,
  changes: WorkChanges,
): InstanceWork {
  const tables = new WorkTables(database, transactions);
  const deadLetters = new DeadLetters(tables, clock, changes);
  const onChange = () => changes.workChanged();
  return {
    deadLetters,
    workQueue: new WorkQueue(tables, deadLetters, clock, onChange),
    schedules: new Schedules(tables, deadLetters, clock, onChange),
  };
}

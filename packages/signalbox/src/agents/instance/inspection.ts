/** What management reads of an instance, whether it is in memory or asleep; an instance is not woken to be looked at. */
import type { Clock } from "../../core/clock.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { DeadLetters } from "../work/dead-letters.ts";
import { InstanceState } from "./instance-state.ts";
import { OutputGate, Transactions } from "../../engines/turn-runtime/index.ts";
import { Schedules } from "../work/schedules.ts";
import { WorkQueue } from "../work/work-queue.ts";
import { WorkTables } from "../work/work-tables.ts";

/** The parts of an instance that can be read. */
export interface InstanceReader {
  readonly database: InstanceDatabase;
  readonly state: Pick<InstanceState, "value">;
  readonly workQueue: Pick<WorkQueue, "list" | "count">;
  readonly deadLetters: Pick<DeadLetters, "list" | "count" | "find">;
  readonly schedules: Pick<Schedules, "list" | "count" | "nextAt">;
}

/** A reader on the database of an instance that is not in memory. */
export function readerOf(database: InstanceDatabase, clock: Clock): InstanceReader {
  const gate = new OutputGate(
    () => database.sync(),
    () => undefined,
  );
  const transactions = new Transactions(database, gate, () => undefined);
  const tables = new WorkTables(database, transactions);
  const deadLetters = new DeadLetters(tables, clock, () => undefined);
  return {
    database,
    state: new InstanceState(database, transactions, 0),
    deadLetters,
    workQueue: new WorkQueue(tables, deadLetters, clock, () => undefined),
    schedules: new Schedules(tables, deadLetters, clock, () => undefined),
  };
}

/** What the storage of an object is built on. */
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { Transactions } from "../../engines/turn-runtime/index.ts";
import type { ChangeCounters } from "./change-counters.ts";

export interface StorageParts {
  readonly database: InstanceDatabase;
  readonly transactions: Transactions;
  readonly counters: ChangeCounters;
}

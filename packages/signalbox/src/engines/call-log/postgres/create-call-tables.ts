/** Creates the tables of the log with the partitions of some days, within the caller's transaction: for a restore. */
import type { Client } from "pg";
import { type CallDatabase, ensureTables } from "./call-tables.ts";
import type { DayStart } from "./days.ts";
import { createPartitions } from "./partitions.ts";

export async function createCallTables(
  database: CallDatabase,
  client: Client,
  days: readonly DayStart[],
): Promise<void> {
  await ensureTables(database);
  for (const day of days) await createPartitions(client, day);
}

/**
 * The daily partitions of `call_log` and `call_log_body`.
 *
 * Invariants:
 * 1. Any node may create or remove a partition at any time; a lock of its own makes one do it, and the others find it done.
 * 2. Readers and writers are not blocked: a partition is created as a table and then attached, and it is detached concurrently before it is
 *    dropped. Both take a lock on the partitioned table that is compatible with reads and writes.
 * 3. A removal that was interrupted is completed by the next one.
 */
import type { Client } from "pg";
import { DAY_MS } from "../day-files.ts";
import { type DayStart, idsOf, partitionSuffix } from "./days.ts";

/** Arbitrary keys of advisory locks, the same in every version. A removal may wait long for readers, and must not delay a creation. */
const CREATION_LOCK = 0x5347_0010;
const REMOVAL_LOCK = 0x5347_0012;
const TABLES = ["call_log", "call_log_body"] as const;
/** Bodies up to a page stay in the row: a row in a second table costs more than the space. */
const STORAGE = {
  call_log: "",
  call_log_body: "WITH (toast_tuple_target = 8160)",
} as const;

/** The partitions that are known to exist. */
export class Partitions {
  readonly #known = new Set<DayStart>();

  /** Creates the partitions of the days that have none. */
  async ensure(client: Client, days: Iterable<DayStart>): Promise<void> {
    for (const day of days) {
      if (this.#known.has(day)) continue;
      await create(client, day);
      this.#known.add(day);
    }
  }

  /** Another node may have removed any of them. */
  forget(): void {
    this.#known.clear();
  }

  /** Removes the partitions of days that ended before `time`, with everything that is counted for those days. */
  async removeBefore(client: Client, time: number): Promise<void> {
    const { rows } = await client.query<{ locked: boolean }>(
      `SELECT pg_try_advisory_lock(${REMOVAL_LOCK}) AS locked`,
    );
    // Another node is removing them.
    if (rows[0]?.locked !== true) return;
    try {
      for (const { table, name, day, isDetaching } of await list(client)) {
        if (day + DAY_MS > time) continue;
        this.#known.delete(day);
        await client.query(
          `ALTER TABLE ${table} DETACH PARTITION ${name} ${isDetaching ? "FINALIZE" : "CONCURRENTLY"}`,
        );
        await client.query(`DROP TABLE ${name}`);
      }
      await dropDetached(client, time);
      await client.query("DELETE FROM call_log_count WHERE day + $1 <= $2", [DAY_MS, time]);
      await client.query("DELETE FROM call_log_day WHERE day + $1 <= $2", [DAY_MS, time]);
      // The id decides the day of a row, and `createdAt` its hour, which may lie on the day before.
      await client.query("DELETE FROM call_log_hour WHERE hour + $1 <= $2", [DAY_MS, time]);
      await client.query("DELETE FROM call_log_totals_delta WHERE hour + $1 <= $2", [DAY_MS, time]);
      await client.query("DELETE FROM call_log_totals WHERE time + $1 <= $2", [DAY_MS, time]);
    } finally {
      await client.query(`SELECT pg_advisory_unlock(${REMOVAL_LOCK})`);
    }
  }
}

/** Within the caller's transaction. The day has no partitions. */
export async function createPartitions(client: Client, day: DayStart): Promise<void> {
  const suffix = partitionSuffix(day);
  const [from, to] = idsOf(day);
  for (const table of TABLES) {
    await client.query(
      `CREATE TABLE ${table}_${suffix} (LIKE ${table} INCLUDING ALL) ${STORAGE[table]};
       ${indexesOf(table, suffix)}
       ALTER TABLE ${table} ATTACH PARTITION ${table}_${suffix} FOR VALUES FROM ('${from}') TO ('${to}')`,
    );
  }
}

/**
 * The filters that the dashboard asks for again and again, on the day that changes. Few calls fail or come from the cache, so others pay next to nothing. Not an index of
 * the partitioned table: the days of earlier releases would get theirs while nobody can write.
 */
function indexesOf(table: string, suffix: string): string {
  if (table !== "call_log") return "";
  return `CREATE INDEX call_log_failed_${suffix} ON call_log_${suffix} (gateway, id) WHERE success = 0;
    CREATE INDEX call_log_cached_${suffix} ON call_log_${suffix} (gateway, id) WHERE cached = 1;`;
}

/** Both tables in one transaction: a day has both partitions or none. */
async function create(client: Client, day: DayStart): Promise<void> {
  const suffix = partitionSuffix(day);
  // From the table and not by `to_regclass`, whose cache may miss what another session has committed while this one waited for the lock.
  const exists = `SELECT 1 FROM pg_class WHERE relname = 'call_log_body_${suffix}' AND relispartition
    AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'call_log'::regclass)`;
  if ((await client.query(exists)).rowCount !== 0) return;
  await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${CREATION_LOCK})`);
  try {
    if ((await client.query(exists)).rowCount === 0) await createPartitions(client, day);
    await client.query("COMMIT");
  } catch (error) {
    // A broken connection rolls back by itself; the caller needs the first error.
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

interface Partition {
  readonly table: string;
  readonly name: string;
  readonly day: DayStart;
  /** A removal was interrupted. */
  readonly isDetaching: boolean;
}

async function list(client: Client): Promise<Partition[]> {
  const { rows } = await client.query<{ parent: string; name: string; pending: boolean }>(
    `SELECT p.relname AS parent, c.relname AS name, i.inhdetachpending AS pending
     FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
     WHERE i.inhparent IN ('call_log'::regclass, 'call_log_body'::regclass)`,
  );
  return rows.flatMap(({ parent, name, pending }) => {
    const day = dayOfName(name);
    return day === null ? [] : [{ table: parent, name, day, isDetaching: pending }];
  });
}

/** Partitions that were detached by a process that ended before it dropped them. */
async function dropDetached(client: Client, time: number): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class
     WHERE relkind = 'r' AND NOT relispartition AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'call_log'::regclass)
       AND relname ~ '^call_log_(body_)?[0-9]{8}$'`,
  );
  for (const { name } of rows) {
    const day = dayOfName(name);
    if (day !== null && day + DAY_MS <= time) await client.query(`DROP TABLE IF EXISTS ${name}`);
  }
}

function dayOfName(name: string): DayStart | null {
  const match = /_(\d{4})(\d{2})(\d{2})$/.exec(name);
  if (match === null) return null;
  const day = Date.parse(`${match[1]}-${match[2]}-${match[3]}T00:00:00Z`);
  return Number.isNaN(day) ? null : day;
}

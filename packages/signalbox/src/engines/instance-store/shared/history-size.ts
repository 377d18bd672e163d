/** The size of the histories in a store, and what keeps PostgreSQL from removing old rows. Estimates of the server, for operators. */
import type { Client } from "pg";

export interface HistorySize {
  /** Records of all instances, about. */
  readonly records: number;
  /** Records and snapshots on disk, with their indexes. */
  readonly bytes: number;
  /** The age of the oldest snapshot that a session of the server holds: a backup, a report, a forgotten transaction. */
  readonly oldestSnapshotMs: number;
  /** How many transactions have begun since the oldest one that may still be read, by a session or a replication slot. */
  readonly oldestTransactionAge: number;
}

const SIZE = `SELECT
  (SELECT COALESCE(sum(n_live_tup), 0) FROM pg_stat_user_tables
    WHERE relid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'agent_log'::regclass))::float8 AS records,
  (SELECT COALESCE(sum(pg_total_relation_size(inhrelid)), 0) FROM pg_inherits WHERE inhparent = 'agent_log'::regclass)::float8
    + pg_total_relation_size('agent_part')::float8 AS bytes,
  (SELECT COALESCE(max(extract(epoch FROM clock_timestamp() - xact_start)), 0) * 1000 FROM pg_stat_activity
    WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid())::float8 AS "oldestSnapshotMs",
  GREATEST(0, (SELECT max(age(backend_xmin)) FROM pg_stat_activity),
    (SELECT max(GREATEST(age(xmin), age(catalog_xmin))) FROM pg_replication_slots))::float8 AS "oldestTransactionAge"`;

export async function readHistorySize(client: Client): Promise<HistorySize> {
  const { rows } = await client.query<HistorySize>(SIZE);
  const [row] = rows;
  if (row === undefined) throw new Error("PostgreSQL returned no sizes");
  return row;
}

/**
 * Creates the tables of a store. They are not part of the migrations of the control plane: a store may be a PostgreSQL of its own, and the tables use
 * what only PostgreSQL has.
 *
 * Each store has a random identity. The first store numbers the others, so that addresses and the order of a list may change; 0 is the store itself.
 */
import type { Client } from "pg";

/** Version of the tables. A store with a later version is refused. */
const VERSION = 1;
/** More partitions keep each index small, and let several vacuums run at once. The number cannot be changed later. */
const PARTITIONS = 16;
/**
 * A server that replaces the primary without its last commits counts from an earlier number, and would give an id to a second instance. Part of
 * each id is random, so that a node that still has the first one cannot write into the history of the second.
 */
const RANDOM_IDS = 2 ** 20;
/** Arbitrary, the same in every version. */
const CREATE_LOCK = 0x5347_0010;

// A record of up to a page of PostgreSQL stays in its row. The data is compressed already.
const CREATE = `CREATE TABLE IF NOT EXISTS agent_store
    (id INTEGER PRIMARY KEY, identity TEXT NOT NULL, version INTEGER NOT NULL, barrier BIGINT NOT NULL DEFAULT 0);
  INSERT INTO agent_store (id, identity, version) VALUES (1, gen_random_uuid()::text, ${VERSION}) ON CONFLICT (id) DO NOTHING;
  CREATE TABLE IF NOT EXISTS agent_store_number (number SERIAL PRIMARY KEY, identity TEXT NOT NULL UNIQUE);
  CREATE SEQUENCE IF NOT EXISTS agent_number;
  CREATE TABLE IF NOT EXISTS agent_owner
    (id BIGINT PRIMARY KEY DEFAULT nextval('agent_number') * ${RANDOM_IDS} + floor(random() * ${RANDOM_IDS})::bigint, key BYTEA NOT NULL UNIQUE, store INTEGER NOT NULL, owner BIGINT, epoch BIGINT NOT NULL, format INTEGER NOT NULL,
     snap_seq BIGINT NOT NULL, snap_pages BIGINT NOT NULL DEFAULT 0, page_bytes INTEGER NOT NULL DEFAULT 0,
     part_bytes BIGINT NOT NULL DEFAULT 0) WITH (fillfactor = 80);
  CREATE TABLE IF NOT EXISTS agent_log
    (agent BIGINT NOT NULL, seq BIGINT NOT NULL, epoch BIGINT NOT NULL, kind "char" NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (agent, seq))
    PARTITION BY HASH (agent);
  ALTER TABLE agent_log ALTER COLUMN data SET STORAGE EXTERNAL;
  ${Array.from({ length: PARTITIONS }, (_, i) => partition(i)).join(";\n")};
  CREATE TABLE IF NOT EXISTS agent_part
    (agent BIGINT NOT NULL, part INTEGER NOT NULL, seq BIGINT NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (agent, part));
  ALTER TABLE agent_part ALTER COLUMN data SET STORAGE EXTERNAL;
  CREATE TABLE IF NOT EXISTS agent_template (hash BYTEA PRIMARY KEY, bytes BYTEA NOT NULL)`;

function partition(i: number): string {
  return `CREATE TABLE IF NOT EXISTS agent_log_${i} PARTITION OF agent_log FOR VALUES WITH (MODULUS ${PARTITIONS}, REMAINDER ${i})
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02)`;
}

/** Within the caller's transaction, for a restore. */
export async function createSharedTables(client: Client): Promise<void> {
  await client.query(CREATE);
}

/** Returns the identity of the store. */
export async function openTables(client: Client): Promise<string> {
  const known = await readStore(client).catch(() => null);
  if (known === null)
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${CREATE_LOCK}); ${CREATE}; COMMIT`);
  const store = known ?? (await readStore(client));
  if (store.version > VERSION)
    throw new Error(
      `the instances' tables in PostgreSQL have version ${store.version}, but this release supports versions up to ${VERSION}`,
    );
  return store.identity;
}

async function readStore(client: Client): Promise<{ identity: string; version: number }> {
  const { rows } = await client.query<{ identity: string; version: number }>(
    "SELECT identity, version FROM agent_store",
  );
  const [row] = rows;
  if (row === undefined) throw new Error("the table agent_store is empty");
  return row;
}

/** The numbers of the stores with these identities, in the first store. */
export async function numberStores(
  first: Client,
  identities: readonly string[],
): Promise<Map<string, number>> {
  await first.query(
    "INSERT INTO agent_store_number (identity) SELECT unnest($1::text[]) ON CONFLICT (identity) DO NOTHING",
    [identities],
  );
  const { rows } = await first.query<{ identity: string; number: number }>(
    "SELECT identity, number FROM agent_store_number WHERE identity = ANY ($1::text[])",
    [identities],
  );
  return new Map(rows.map(({ identity, number }) => [identity, number]));
}

/**
 * The rows of the nodes that share the database. No node compares its clock with that of another one: the age of a heartbeat is measured by PostgreSQL's
 * clock, and the time for which no heartbeat came by the monotonic clock of the node that waits for it.
 *
 * The tables exist before the migrations, because nodes join first: a migration runs once, by one member.
 */
import type { Client } from "pg";
import type { ClusterMember, NodeState } from "../membership.ts";
import { CREATE_COMPATIBILITY } from "../schema-compatibility.ts";
import { type JoiningNode, type LivingNode, refuseBeside } from "./join-rules.ts";

export interface NodeDescription extends JoiningNode {
  readonly name: string;
  readonly version: string;
  /** The newest migration that the node knows. */
  readonly schema: number;
  /** Without a heartbeat for so long, any other node may declare this one dead. In its row: other nodes may have another value. */
  readonly deadAfterMs: number;
}

/** What an acknowledged heartbeat returns. */
export interface Beat {
  /** All living nodes. */
  readonly members: readonly ClusterMember[];
  /** Acknowledged heartbeats of this incarnation, this one included. */
  readonly count: number;
  /** The clock of PostgreSQL. */
  readonly now: number;
  /** The migration that a version must know to use the database. */
  readonly neededSchema: number;
  /** The version of the settings that nodes keep in memory. */
  readonly settingsVersion: number;
}

export const DEFAULT_DEAD_AFTER_MS = 2500;
/** A node that joins does not know whether the server, or the whole machine, has stalled: it leaves the late ones to the heartbeats of all. */
const LONG_DEAD = 4;

/** Arbitrary keys, the same in every version. */
export const JOIN_LOCK = 0x5347_0004;
/** With the incarnation as second key: held shared by every write of a node, exclusively by a node that replaces it. */
const WRITE_LOCK = 0x5347_0005;
/** Those of scopes begin here. */
const SCOPE_LOCKS = 0x5348_0000;

const CREATE = `CREATE TABLE IF NOT EXISTS signalbox_cluster
    (id INTEGER PRIMARY KEY, cluster TEXT NOT NULL, secret_check TEXT);
  INSERT INTO signalbox_cluster (id, cluster) VALUES (1, gen_random_uuid()::text) ON CONFLICT (id) DO NOTHING;
  CREATE TABLE IF NOT EXISTS signalbox_node
    (inc BIGSERIAL PRIMARY KEY, name TEXT NOT NULL, host TEXT NOT NULL, port INTEGER NOT NULL, version TEXT NOT NULL, state TEXT NOT NULL,
     schema BIGINT NOT NULL, secret_check TEXT, shared TEXT NOT NULL, joined_at TIMESTAMPTZ NOT NULL, hb TIMESTAMPTZ NOT NULL,
     beats BIGINT NOT NULL, link_min INTEGER NOT NULL, link_max INTEGER NOT NULL, dead_after_ms INTEGER NOT NULL) WITH (fillfactor = 20);
  CREATE TABLE IF NOT EXISTS signalbox_node_write
    (inc BIGINT NOT NULL, slot INTEGER NOT NULL, mark TEXT NOT NULL, PRIMARY KEY (inc, slot));
  CREATE TABLE IF NOT EXISTS signalbox_settings (id INTEGER PRIMARY KEY, version BIGINT NOT NULL) WITH (fillfactor = 20);
  INSERT INTO signalbox_settings (id, version) VALUES (1, 0) ON CONFLICT (id) DO NOTHING;
  CREATE TABLE IF NOT EXISTS signalbox_settings_change
    (version BIGINT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (version, kind, key));
  ${CREATE_COMPATIBILITY};
  DELETE FROM signalbox_node_write WHERE inc IN
    (SELECT inc FROM signalbox_node WHERE state = 'dead' AND hb < clock_timestamp() - interval '1 day');
  DELETE FROM signalbox_node WHERE state = 'dead' AND hb < clock_timestamp() - interval '1 day'`;

const UNDEFINED_TABLE = "42P01";
const AGE = "(extract(epoch FROM clock_timestamp() - hb) * 1000)::float8";
const DEAD_AFTER = `dead_after_ms AS "deadAfterMs"`;
const NEEDED_SCHEMA = "SELECT COALESCE(max(needs), 0) FROM schema_compatibility";
const MEMBER = `inc::text AS inc, name, host, port, version, state, (extract(epoch FROM joined_at) * 1000)::float8 AS "joinedAt", ${AGE} AS "ageMs"`;

/** Within the caller's transaction. */
export async function createNodeTables(client: Client): Promise<void> {
  await client.query(CREATE);
}

async function createTables(client: Client): Promise<void> {
  await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${JOIN_LOCK}); ${CREATE}; COMMIT`);
}

/** Creates the tables, and reserves an incarnation. */
export async function reserveIncarnation(client: Client): Promise<{ inc: string; cluster: string }> {
  await createTables(client);
  const { rows } = await client.query<{ inc: string; cluster: string }>(
    "SELECT nextval('signalbox_node_inc_seq')::text AS inc, (SELECT cluster FROM signalbox_cluster) AS cluster",
  );
  const [row] = rows;
  if (row === undefined) throw new Error("PostgreSQL returned no incarnation");
  return row;
}

/** Which of the nodes seem to be dead. */
type FindDead = <Node extends SilentNode>(nodes: readonly Node[]) => readonly Node[];

export interface JoinOptions {
  readonly address: { readonly host: string; readonly port: number };
  /** Rows for the marks of writes. */
  readonly markCount: number;
  readonly findDead: FindDead;
}

/** Inserts the node's row, and the rows of its write marks. Throws `JoinRefusal` if another node does not allow it. */
export async function joinAs(
  client: Client,
  inc: string,
  node: NodeDescription,
  { address, markCount, findDead }: JoinOptions,
): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [JOIN_LOCK]);
    await refuseStranger(client, node, findDead);
    await client.query("UPDATE signalbox_cluster SET secret_check = $1", [node.secretCheck]);
    await client.query(
      `INSERT INTO signalbox_node (inc, name, host, port, version, state, schema, secret_check, shared, link_min, link_max, dead_after_ms, joined_at, hb,
         beats)
       VALUES ($1, $2, $3, $4, $5, 'up', $6, $7, $8, $9, $10, $11, clock_timestamp(), clock_timestamp(), 0)`,
      [
        inc,
        node.name,
        address.host,
        address.port,
        node.version,
        node.schema,
        node.secretCheck,
        JSON.stringify(node.shared),
        node.linkVersions.min,
        node.linkVersions.max,
        node.deadAfterMs,
      ],
    );
    await client.query(
      "INSERT INTO signalbox_node_write (inc, slot, mark) SELECT $1, slot, '' FROM generate_series(0, $2::int - 1) AS slot",
      [inc, markCount],
    );
    await client.query("COMMIT");
  } catch (error) {
    // A broken connection rolls back by itself; the caller needs the first error.
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

async function refuseStranger(client: Client, node: NodeDescription, findDead: FindDead): Promise<void> {
  const { rows } = await client.query<LivingNode & SilentNode>(
    `SELECT inc::text AS inc, name, version, secret_check AS "secretCheck", shared, link_min AS "linkMin", link_max AS "linkMax",
       beats::text AS beats, ${AGE} AS "ageMs", ${DEAD_AFTER} FROM signalbox_node WHERE state <> 'dead'`,
  );
  const isAlone = node.secretCheck === null;
  const silent = findDead(rows);
  const olderThan = (times: number) =>
    rows.filter((row) => row.ageMs > row.deadAfterMs * times || silent.includes(row));
  const late = olderThan(1);
  refuseBeside(
    rows.filter((row) => !late.includes(row)),
    node,
  );
  const dead = isAlone ? late : olderThan(LONG_DEAD);
  // A node that runs alone replaces the dead one: no write of the dead one may follow. In a cluster every write is checked on its own, and a
  // transaction that the dead node left open must not delay the others.
  if (isAlone) {
    for (const { inc } of dead)
      await client.query("SELECT pg_advisory_xact_lock($1, $2)", [WRITE_LOCK, lockKey(inc)]);
  }
  await declareDead(client, dead);
}

/**
 * Returns those that are dead now; nodes that have had a heartbeat meanwhile are left alone. A row that is locked has one at the moment, or is being declared
 * dead by another node: no heartbeat waits for it.
 */
async function declareDead(client: Client, nodes: readonly SilentNode[]): Promise<ReadonlySet<string>> {
  if (nodes.length === 0) return new Set();
  const { rows } = await client.query<{ inc: string }>(
    `WITH silent AS (SELECT n.inc FROM signalbox_node n JOIN unnest($1::bigint[], $2::bigint[]) AS v(inc, beats)
         ON n.inc = v.inc AND n.beats = v.beats FOR UPDATE OF n SKIP LOCKED)
     UPDATE signalbox_node SET state = 'dead' WHERE inc IN (SELECT inc FROM silent) RETURNING inc::text AS inc`,
    [nodes.map(({ inc }) => inc), nodes.map(({ beats }) => beats)],
  );
  return new Set(rows.map(({ inc }) => inc));
}

/**
 * Statements that begin a write transaction, for one round trip. The last result has one row unless the node was declared dead. One that may take long
 * waits for its scope without a limit, for example for the migration of another node; for tables it does not: while it waited, all others would wait
 * behind it.
 */
export function beginWrite(
  inc: string,
  mark: string,
  scopeLock: number | null,
  mayTakeLong: boolean,
): string {
  const lock = scopeLock === null ? "" : `SELECT pg_advisory_xact_lock(${scopeLock});`;
  const scope = mayTakeLong
    ? `SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; ${lock} SET LOCAL lock_timeout TO DEFAULT;`
    : lock;
  return `BEGIN; SELECT pg_advisory_xact_lock_shared(${WRITE_LOCK}, ${lockKey(inc)}); ${scope} ${mark};
    SELECT inc FROM signalbox_node WHERE inc = ${inc} AND state <> 'dead'`;
}

/**
 * Renews the node's heartbeat; returns null if this node was declared dead. Null is final for the incarnation: a dead row is never revived.
 */
export async function beat(
  client: Client,
  inc: string,
  { state, findDead }: BeatOptions,
): Promise<Beat | null> {
  const { rows } = await client.query<ClusterMember & BeatColumns & SilentNode>({
    name: "beat",
    text: `WITH beat AS (UPDATE signalbox_node SET hb = clock_timestamp(), state = $2, beats = beats + 1
        WHERE inc = $1 AND state <> 'dead' RETURNING beats)
      SELECT ${MEMBER}, ${DEAD_AFTER}, beats::text AS beats, (SELECT beats FROM beat)::float8 AS count, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now,
        (${NEEDED_SCHEMA})::float8 AS "neededSchema", (SELECT version FROM signalbox_settings)::float8 AS "settingsVersion"
      FROM signalbox_node WHERE state <> 'dead' ORDER BY signalbox_node.inc`,
    values: [inc, state],
  });
  const [first] = rows;
  if (first === undefined || first.count === null) return null;
  const { count, now, neededSchema, settingsVersion } = first;
  const others = rows.filter((row) => row.inc !== inc);
  const dead = await declareDead(client, findDead?.(others) ?? []);
  const members = rows.filter((row) => !dead.has(row.inc)).map((row) => toMember(row, inc, state));
  return { members, count, now, neededSchema, settingsVersion };
}

/**
 * For a node whose heartbeat cannot be stored. The answer holds for the moment of the question only: another node may declare this one dead right
 * afterwards.
 */
export async function readOwn(
  client: Client,
  inc: string,
): Promise<{ readonly isAlive: boolean; readonly settingsVersion: number }> {
  const { rows } = await client.query<{ isAlive: boolean; settingsVersion: number }>(
    `SELECT EXISTS (SELECT FROM signalbox_node WHERE inc = $1 AND state <> 'dead') AS "isAlive",
       (SELECT version FROM signalbox_settings)::float8 AS "settingsVersion"`,
    [inc],
  );
  return rows[0] ?? { isAlive: false, settingsVersion: 0 };
}

interface BeatOptions {
  readonly state: NodeState;
  /** Null while the server has just become reachable. */
  readonly findDead: FindDead | null;
}

/** Another node, as one that may be dead. */
export interface SilentNode {
  readonly ageMs: number;
  readonly deadAfterMs: number;
  readonly inc: string;
  /** Its acknowledged heartbeats. */
  readonly beats: string;
}

interface BeatColumns {
  /** Null if the row of this node is dead or gone. */
  readonly count: number | null;
  readonly now: number;
  readonly neededSchema: number;
  readonly settingsVersion: number;
}

/** The query sees the rows as they were before its own update. */
function toMember(row: ClusterMember, own: string, state: NodeState): ClusterMember {
  const { inc, name, host, port, version, joinedAt } = row;
  const isOwn = inc === own;
  return {
    inc,
    name,
    host,
    port,
    version,
    joinedAt,
    state: isOwn ? state : row.state,
    ageMs: isOwn ? 0 : row.ageMs,
  };
}

export async function leave(client: Client, inc: string): Promise<void> {
  await client.query(
    "WITH left_node AS (DELETE FROM signalbox_node WHERE inc = $1 RETURNING inc) DELETE FROM signalbox_node_write WHERE inc IN (SELECT inc FROM left_node)",
    [inc],
  );
}

/** What the server has of an incarnation; `beats` is null if it has no row of it. */
export interface StoredNode {
  readonly beats: number | null;
  /** By slot. */
  readonly marks: ReadonlyMap<number, string>;
  /** Changes with each start of a server, and is different for each server. */
  readonly serverStart: string;
  /** The migration that a version must know to use the database. */
  readonly neededSchema: number;
}

/** A server that has lost even the tables gets new ones. */
export async function readStored(client: Client, inc: string): Promise<StoredNode> {
  try {
    return await readRows(client, inc);
  } catch (error) {
    if ((error as { code?: unknown }).code !== UNDEFINED_TABLE) throw error;
    await createTables(client);
    return readRows(client, inc);
  }
}

async function readRows(client: Client, inc: string): Promise<StoredNode> {
  const { rows: nodes } = await client.query<Omit<StoredNode, "marks">>(
    `SELECT (SELECT beats FROM signalbox_node WHERE inc = $1)::float8 AS beats, pg_postmaster_start_time()::text AS "serverStart",
       (${NEEDED_SCHEMA})::float8 AS "neededSchema"`,
    [inc],
  );
  const { rows } = await client.query<{ slot: number; mark: string }>(
    "SELECT slot, mark FROM signalbox_node_write WHERE inc = $1",
    [inc],
  );
  const [node] = nodes;
  if (node === undefined) throw new Error("PostgreSQL returned no row");
  return { ...node, marks: new Map(rows.map(({ slot, mark }) => [slot, mark])) };
}

/** For an incarnation that is replaced by another one of the same process. */
export async function retire(client: Client, inc: string): Promise<void> {
  await client.query("UPDATE signalbox_node SET state = 'dead' WHERE inc = $1", [inc]);
}

/** Advisory locks have 32-bit keys; two incarnations 2^31 starts apart may share one. */
function lockKey(inc: string): number {
  return Number(BigInt(inc) % 0x7fff_ffffn);
}

/** The lock of a scope over all nodes. Two scopes that share a lock wait for each other, which is harmless. */
export function scopeLock(scope: string): number {
  let hash = 0;
  for (const character of scope) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return SCOPE_LOCKS + (hash & 0xffff);
}

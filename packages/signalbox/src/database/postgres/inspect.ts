/** Reads facts about a PostgreSQL server for `signalbox doctor`. Writes nothing, and takes no lock. */
import { Client } from "pg";
import { Servers, sessionConfig } from "../../engines/postgres-session/index.ts";
import { newestMigration } from "../migrate.ts";
import { readDurability, type ServerSetting } from "./durability.ts";
import { POOL_SIZE } from "./postgres-pool.ts";

const CONNECT_TIMEOUT_MS = 3000;
const SESSION = { name: "signalbox doctor", statementMs: 3000 };
/** Besides the pool: the session of the node, its heartbeats, and a replaced connection of each. */
const EXTRA_CONNECTIONS = 4;

export interface PostgresFacts {
  /** `host:port/database`, without user and password. */
  readonly address: string;
  readonly version: string;
  readonly versionNumber: number;
  readonly isStandby: boolean;
  readonly isEncrypted: boolean;
  readonly canCreate: boolean;
  /** Difference to the clock of this machine; positive if the server is ahead. */
  readonly skewMs: number;
  /** The most by which `skewMs` can be wrong. */
  readonly uncertaintyMs: number;
  readonly maxConnections: number;
  readonly usedConnections: number;
  readonly neededConnections: number;
  readonly settings: readonly ServerSetting[];
  readonly schema: SchemaFacts;
}

export interface SchemaFacts {
  /** Newest migration in the database; null before the first start. */
  readonly newest: number | null;
  readonly known: number;
  /** Migrations of a newer version that this version cannot use. */
  readonly unusable: readonly string[];
}

/** One entry per server of the connection string; an error for a server that cannot be used. */
export async function inspectPostgres(
  url: string,
): Promise<{ address: string; facts: PostgresFacts | Error }[]> {
  return Promise.all(
    new Servers(url).urls.map(async (one) => {
      const address = addressOf(one);
      const facts = await inspectServer(one, address).catch((error: unknown) =>
        error instanceof Error ? error : new Error(String(error)),
      );
      return { address, facts };
    }),
  );
}

async function inspectServer(url: string, address: string): Promise<PostgresFacts> {
  const client = new Client({
    ...sessionConfig(SESSION),
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // The error of a lost connection is that of the query.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await readFacts(client, address);
  } finally {
    // The facts, or the error, are there already.
    await client.end().catch(() => undefined);
  }
}

interface FactsRow {
  version: string;
  number: string;
  standby: boolean;
  encrypted: boolean;
  can_create: boolean;
  max_connections: string;
  used: string;
}

async function readFacts(client: Client, address: string): Promise<PostgresFacts> {
  const { rows } = await client.query<FactsRow>(`SELECT
      current_setting('server_version') AS version,
      current_setting('server_version_num') AS number,
      pg_is_in_recovery() AS standby,
      coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS encrypted,
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS can_create,
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS max_connections,
      (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used`);
  const row = rows[0];
  if (row === undefined) throw new Error("the server answered with no row");
  const clock = await readSkew(client);
  return {
    address,
    version: row.version,
    versionNumber: Number(row.number),
    isStandby: row.standby,
    isEncrypted: row.encrypted,
    canCreate: row.can_create,
    ...clock,
    maxConnections: Number(row.max_connections),
    usedConnections: Number(row.used),
    neededConnections: POOL_SIZE + EXTRA_CONNECTIONS,
    settings: await readDurability(client),
    schema: await readSchema(client),
  };
}

/** The answer was made between sending the query and receiving it. */
async function readSkew(client: Client): Promise<{ skewMs: number; uncertaintyMs: number }> {
  const sent = Date.now();
  const { rows } = await client.query<{ now: string }>(
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now",
  );
  const received = Date.now();
  const half = (received - sent) / 2;
  return { skewMs: Math.round(Number(rows[0]?.now) - (sent + half)), uncertaintyMs: Math.ceil(half) + 1 };
}

async function readSchema(client: Client): Promise<SchemaFacts> {
  const known = newestMigration();
  const { rows: tables } = await client.query<{ exists: boolean }>(
    "SELECT to_regclass('schema_migrations') IS NOT NULL AND to_regclass('schema_compatibility') IS NOT NULL AS exists",
  );
  if (tables[0]?.exists !== true) return { newest: null, known, unusable: [] };
  const { rows } = await client.query<{ id: string; name: string; needs: string | null }>(
    "SELECT m.id, m.name, c.needs FROM schema_migrations m LEFT JOIN schema_compatibility c ON c.id = m.id ORDER BY m.id",
  );
  const unusable = rows.filter(
    ({ id, needs }) => Number(id) > known && (needs === null || Number(needs) > known),
  );
  return {
    newest: Number(rows.at(-1)?.id ?? 0),
    known,
    unusable: unusable.map(({ id, name }) => `${id}-${name}`),
  };
}

function addressOf(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return host + pathname;
  } catch {
    return "PostgreSQL";
  }
}

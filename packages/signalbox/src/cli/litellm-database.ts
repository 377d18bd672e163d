/** Rows of a LiteLLM proxy's PostgreSQL: keys, teams, users and shared budgets. Reads in one read-only transaction and writes nothing. */
import { UsageError } from "./command.ts";

export type Row = Readonly<Record<string, unknown>>;

export interface LiteLlmRows {
  readonly keys: readonly Row[];
  readonly teams: readonly Row[];
  readonly users: readonly Row[];
  readonly budgets: readonly Row[];
  /** Other tables with rows, without those of a history. */
  readonly others: readonly string[];
}

const KEYS = "LiteLLM_VerificationToken";
const TEAMS = "LiteLLM_TeamTable";
const USERS = "LiteLLM_UserTable";
const BUDGETS = "LiteLLM_BudgetTable";
const READ: ReadonlySet<string> = new Set([KEYS, TEAMS, USERS, BUDGETS]);
const HISTORY =
  /SpendLog|^LiteLLM_Daily|Audit|Deleted|Deprecated|Error|HealthCheck|Notification|CronJob|Invitation/;
const TIMEOUT_MS = 30_000;

export async function readLiteLlmDatabase(url: string): Promise<LiteLlmRows> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: TIMEOUT_MS,
    statement_timeout: TIMEOUT_MS,
    application_name: "signalbox import",
  });
  // A connection that ends is an error of the query that runs on it.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const found = await client.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name LIKE 'LiteLLM%' ORDER BY 1",
    );
    const tables = found.rows.map(({ name }) => name);
    if (!tables.includes(KEYS)) throw new Error(`the database has no table ${KEYS}`);
    // As JSON, because a driver reads times without a zone as local ones, and large integers as text.
    const read = async (table: string, key: string) => {
      if (!tables.includes(table)) return [];
      // In an order that stays: names and ids of what is imported are the same when the import is repeated.
      const { rows } = await client.query<{ row: Row }>(
        `SELECT to_jsonb(t) AS row FROM ${client.escapeIdentifier(table)} t ORDER BY ${client.escapeIdentifier(key)}`,
      );
      return rows.map(({ row }) => row);
    };
    const others: string[] = [];
    for (const table of tables) {
      if (READ.has(table) || HISTORY.test(table)) continue;
      const { rowCount } = await client.query(`SELECT 1 FROM ${client.escapeIdentifier(table)} LIMIT 1`);
      if ((rowCount ?? 0) > 0) others.push(table);
    }
    return {
      keys: await read(KEYS, "token"),
      teams: await read(TEAMS, "team_id"),
      users: await read(USERS, "user_id"),
      budgets: await read(BUDGETS, "budget_id"),
      others,
    };
  } catch (error) {
    throw new UsageError(`--database: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    // The rows were read, or the first error is reported.
    await client.end().catch(() => undefined);
  }
}

/** Call logs in databases of one PostgreSQL, for tests. */
import { Client } from "pg";
import { PostgresDatabase } from "../../../database/postgres/postgres-database.ts";
import { openTestPostgres, type TestPostgres } from "../../../../../../test/support/test-postgres.ts";
import { LOG_OPTIONS, type TestStorage } from "../call-log-fixture.ts";
import { PostgresCallLog, type PostgresCallLogOptions } from "./postgres-call-log.ts";

export interface PostgresStorage extends TestStorage {
  readonly url: string;
  readonly database: PostgresDatabase;
  openLog(options?: Partial<PostgresCallLogOptions>): Promise<PostgresCallLog>;
  /** Rows of a query, on a connection of an administrator. */
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

export class PostgresLogs {
  readonly server: TestPostgres;
  #databases = 0;

  private constructor(server: TestPostgres) {
    this.server = server;
  }

  static async start(): Promise<PostgresLogs> {
    return new PostgresLogs(await openTestPostgres());
  }

  /** An empty database. */
  readonly openStorage = async (): Promise<PostgresStorage> => {
    const name = `calls_${this.#databases++}`;
    await run(this.server.url, `CREATE DATABASE ${name}`);
    const url = this.server.url.replace(/\/postgres$/, `/${name}`);
    const database = await PostgresDatabase.open(url, (error) => {
      throw error;
    });
    return {
      url,
      database,
      openLog: (options = {}) => PostgresCallLog.open({ ...LOG_OPTIONS, database, url, ...options }),
      query: (text, values = []) => run(url, text, values),
      isAllCounted: async () =>
        (await run(url, "SELECT 1 FROM call_log WHERE counted = 0 LIMIT 1")).length === 0,
      remove: () => database.close(),
    };
  };

  stop(): Promise<void> {
    return this.server.drop();
  }
}

async function run<Row>(url: string, text: string, values: readonly unknown[] = []): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  // `query` reports the same error.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text, [...values])).rows as Row[];
  } finally {
    await client.end();
  }
}

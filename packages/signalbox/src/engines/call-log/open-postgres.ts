/** The log in PostgreSQL, loaded on demand: most installations do not need it. */
import type { PostgresCallLog, PostgresCallLogOptions } from "./postgres/postgres-call-log.ts";

export async function openPostgresCallLog(options: PostgresCallLogOptions): Promise<PostgresCallLog> {
  const adapter = await import("./postgres/postgres-call-log.ts");
  return adapter.PostgresCallLog.open(options);
}

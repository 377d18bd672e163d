/** The migrations that were applied to a database. */
import { sql } from "../../core/sql.ts";
import type { Queryable } from "../../core/queryable.ts";
import type { StoredMigration } from "./manifest.ts";

export async function readMigrations(database: Queryable | null): Promise<StoredMigration[]> {
  return (
    (await database?.all<StoredMigration>(
      sql`SELECT m.id, m.checksum, COALESCE(c.needs, m.id) AS needs
          FROM schema_migrations m LEFT JOIN schema_compatibility c ON c.id = m.id ORDER BY m.id`,
    )) ?? []
  );
}

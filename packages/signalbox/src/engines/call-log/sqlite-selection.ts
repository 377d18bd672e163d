/** Filters in the dialect of SQLite. */
import { containsInSqlite } from "../../core/any-case.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { SelectionSql } from "./selection-sql.ts";

export const SQLITE_SELECTION = new SelectionSql({
  contains: containsInSqlite,
  isAuthenticated: rawSql("(token_id IS NOT NULL)"),
  entries: rawSql("json_each(coalesce(metadata, '{}')) AS entry"),
  entryText: rawSql(
    "CASE entry.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE CAST(entry.value AS TEXT) END",
  ),
  entryNumber: rawSql("CASE WHEN entry.type IN ('integer', 'real') THEN entry.value END"),
  asText: (column) => column,
  bind: (value) => sql`${value}`,
});

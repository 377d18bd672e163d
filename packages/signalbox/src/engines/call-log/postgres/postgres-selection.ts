/** Filters in the dialect of PostgreSQL. */
import { containsInPostgres, containsInPostgresC } from "../../../core/any-case.ts";
import { rawSql, sql } from "../../../core/sql.ts";
import { SelectionSql } from "../selection-sql.ts";
import { storableText } from "./storable.ts";

const METADATA = rawSql("metadata");
/** Without a backslash in the metadata, each of its texts is in it as it is. */
const HAS_BACKSLASH = rawSql("strpos(metadata, '\\') > 0");

export const POSTGRES_SELECTION = new SelectionSql({
  contains: (column, text) => containsInPostgres(column, storableText(text)),
  mayHaveText: (text, isAnyCase) => {
    const found = isAnyCase
      ? containsInPostgresC(METADATA, storableText(text))
      : sql`strpos(metadata, ${storableText(text)}) > 0`;
    return sql`(${found} OR ${HAS_BACKSLASH})`;
  },
  isAuthenticated: rawSql("(token_id IS NOT NULL)::int"),
  // Only an object has entries. The two casts are in branches of their own: PostgreSQL may evaluate an AND in any order.
  entries: rawSql(
    `json_each(CASE WHEN json_typeof(coalesce(metadata, '{}')::json) = 'object' THEN coalesce(metadata, '{}')::json ELSE '{}'::json END)
       AS entry(key, value)`,
  ),
  entryText: rawSql(`coalesce(entry.value #>> '{}', 'null') COLLATE "C"`),
  entryNumber: rawSql(
    "CASE WHEN json_typeof(entry.value) = 'number' THEN (entry.value #>> '{}')::float8 END",
  ),
  asText: (column) => sql`(${column})::text`,
  // Integer columns are compared with numbers that may have a fraction.
  bind: (value, isNumber) => (isNumber ? sql`${Number(value)}::float8` : sql`${storableText(String(value))}`),
});

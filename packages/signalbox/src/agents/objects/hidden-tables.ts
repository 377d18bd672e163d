/**
 * The tables of the runtime are in the database of the object, and a program that lists its tables must not find them: it may copy, count or drop what it finds.
 * Names of SQLite's catalog in a statement become common table expressions of the same name, without those tables.
 */
import { replaceOutsideOfTokens } from "./sql-tokens.ts";

const MENTIONS = /sqlite_master|sqlite_schema|table_list/i;
const TABLE_LIST = /^[\s;]*pragma\s+(?:main\s*\.\s*)?table_list\s*;?\s*$/i;
/** A name of the catalog, with its schema if it is written out. A table-valued function with arguments names one table. */
const CATALOG = /(?:\bmain\s*\.\s*)?\b(sqlite_master|sqlite_schema|pragma_table_list)\b(?!\s*\()/gi;
/** How a statement begins that can have common table expressions. */
const BEGINNING =
  /^([\s;]*)(with\s+recursive\b|with\b|(?=(?:select|insert|replace|update|delete|values)\b))/i;

const OWN = String.raw`LIKE '\_signalbox\_%' ESCAPE '\'`;
const EXPRESSIONS: Readonly<Record<string, string>> = {
  sqlite_master: `sqlite_master AS (SELECT * FROM main.sqlite_master WHERE name NOT ${OWN} AND tbl_name NOT ${OWN})`,
  sqlite_schema: `sqlite_schema AS (SELECT * FROM main.sqlite_schema WHERE name NOT ${OWN} AND tbl_name NOT ${OWN})`,
  pragma_table_list: `pragma_table_list AS (SELECT * FROM main.pragma_table_list WHERE name NOT ${OWN})`,
};

/** The statement, as far as it reads the catalog. Other statements are returned as they are. */
export function hideOwnTables(statement: string): string {
  if (!MENTIONS.test(statement)) return statement;
  if (TABLE_LIST.test(statement)) return hideOwnTables("SELECT * FROM pragma_table_list");
  const beginning = BEGINNING.exec(statement);
  if (beginning === null) return statement;
  const used = new Set<string>();
  const text = replaceOutsideOfTokens(statement, (part) =>
    part.replaceAll(CATALOG, (_found, name: string) => {
      used.add(name.toLowerCase());
      return name;
    }),
  );
  if (used.size === 0) return statement;
  const expressions = [...used].map((name) => EXPRESSIONS[name]).join(", ");
  const [whole, blanks = "", keyword = ""] = beginning;
  const rest = text.slice(whole.length);
  return keyword === ""
    ? `${blanks}WITH ${expressions} ${rest}`
    : `${blanks}${keyword} ${expressions}, ${rest}`;
}

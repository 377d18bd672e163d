/**
 * A statement that finds many rows by their whole keys, each by the same unique index: `SELECT … WHERE a = ? AND b = ? UNION ALL SELECT …`. One
 * statement is one round trip to PostgreSQL.
 *
 * Not `b IN (…)`: SQLite, which has no statistics, takes a list of more than a few values for longer than everything with the same `a`, and reads all of
 * that. Not a join with `VALUES`: PostgreSQL takes the parameters in it for texts.
 *
 * Lists have a few fixed lengths, filled up with their last key: each length has a constant text that both databases prepare once.
 */
import type { Queryable } from "./queryable.ts";
import { SqlQuery, type SqlValue } from "./sql.ts";

/** Ascending. SQLite allows 500 parts of a compound statement. */
const LENGTHS = [1, 2, 4, 8, 16, 32, 64] as const;
export const LONGEST_LOOK_UP = 64;

export class LookUps<Row extends object> {
  readonly #keyColumns: number;
  readonly #texts: readonly (readonly string[])[];

  /** `key` are the columns of a unique index. */
  constructor(columns: string, table: string, key: readonly string[]) {
    this.#keyColumns = key.length;
    this.#texts = LENGTHS.map((length) => textOf(columns, table, key, length));
  }

  /** The row of each key, in their order; undefined for a key without a row. `keys` has the columns of all keys. */
  async find(queryable: Queryable, keys: readonly SqlValue[]): Promise<(Row | undefined)[]> {
    const rows = Array.from<Row | undefined>({ length: keys.length / this.#keyColumns });
    for (const [i, query] of this.queries(keys).entries()) {
      for (const row of await queryable.all<Row & { readonly place: number }>(query)) {
        const at = i * LONGEST_LOOK_UP + row.place;
        // Beyond them are repetitions of the last key.
        if (at < rows.length) rows[at] = row;
      }
    }
    return rows;
  }

  /** The statements of `find`. */
  queries(keys: readonly SqlValue[]): SqlQuery[] {
    const width = this.#keyColumns;
    const queries: SqlQuery[] = [];
    for (let at = 0; at < keys.length; at += LONGEST_LOOK_UP * width) {
      const part = keys.slice(at, at + LONGEST_LOOK_UP * width);
      const index = LENGTHS.findIndex((length) => length * width >= part.length);
      const last = part.slice(-width);
      while (part.length < (LENGTHS[index] ?? 0) * width) part.push(...last);
      queries.push(new SqlQuery(this.#texts[index] as readonly string[], part));
    }
    return queries;
  }
}

/** Returns the text around the values. Frozen like a template's text: adapters cache prepared statements by identity. */
function textOf(columns: string, table: string, key: readonly string[], length: number): readonly string[] {
  const parts: string[] = [];
  for (let place = 0; place < length; place++) {
    const select = `SELECT ${place} AS place, ${columns} FROM ${table} WHERE`;
    for (const [i, column] of key.entries()) {
      const before = i > 0 ? " AND" : place === 0 ? select : ` UNION ALL ${select}`;
      parts.push(`${before} ${column} = `);
    }
  }
  parts.push("");
  return Object.freeze(parts);
}

/**
 * A tagged template for SQL that separates text and values.
 *
 * The text uses the common subset of SQLite and PostgreSQL; each adapter inserts its own placeholders (`?` or `$n`). Fragments can be nested,
 * for dynamic filters. User input is always a value.
 * See docs/decisions/0003.
 */

export type SqlValue = string | number | bigint | null | Uint8Array;

export class SqlQuery {
  /** The text around the values, with fragments merged. */
  readonly parts: readonly string[];
  readonly values: readonly SqlValue[];

  constructor(parts: readonly string[], values: readonly SqlValue[]) {
    this.parts = parts;
    this.values = values;
  }
}

export function sql(parts: TemplateStringsArray, ...values: readonly (SqlValue | SqlQuery)[]): SqlQuery {
  // Without fragments the template's own array is kept: adapters cache prepared statements by its identity.
  if (!values.some((value) => value instanceof SqlQuery)) return new SqlQuery(parts, values as SqlValue[]);
  const outParts: string[] = [parts[0] ?? ""];
  const outValues: SqlValue[] = [];
  values.forEach((value, i) => {
    const after = parts[i + 1] ?? "";
    if (value instanceof SqlQuery) {
      appendToLast(outParts, value.parts[0] ?? "");
      outParts.push(...value.parts.slice(1));
      outValues.push(...value.values);
      appendToLast(outParts, after);
    } else {
      outValues.push(value);
      outParts.push(after);
    }
  });
  return new SqlQuery(outParts, outValues);
}

/** Joins fragments: `joinSql(conditions, " AND ")`. */
export function joinSql(fragments: readonly SqlQuery[], separator: string): SqlQuery {
  return fragments.reduce(
    (joined, fragment, i) => (i === 0 ? fragment : sql`${joined}${rawSql(separator)}${fragment}`),
    rawSql(""),
  );
}

/** Creates a comma-separated list of values, for `IN (…)` and `VALUES (…)`. */
export function sqlList(values: readonly SqlValue[]): SqlQuery {
  return joinSql(
    values.map((value) => sql`${value}`),
    ", ",
  );
}

/** Creates a fragment of constant text. Never pass user input. */
export function rawSql(text: string): SqlQuery {
  // Frozen like a template's array: adapters cache the prepared statement of a constant by identity.
  return new SqlQuery(Object.freeze([text]), []);
}

function appendToLast(parts: string[], text: string): void {
  parts[parts.length - 1] += text;
}

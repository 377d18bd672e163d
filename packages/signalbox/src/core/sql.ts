/**
 * SQL written by hand, once for every engine: a tagged template that keeps text and values apart.
 *
 * The text uses the subset that SQLite and PostgreSQL share; each adapter turns the gaps into its own placeholders (`?` or
 * `$n`). A fragment may stand inside another one, which is how dynamic filters are built; user input is only ever a value.
 */

export type SqlValue = string | number | bigint | null | Uint8Array;

export class SqlQuery {
  /** The literal parts around the values, fragments already folded in. */
  readonly parts: readonly string[];
  readonly values: readonly SqlValue[];

  constructor(parts: readonly string[], values: readonly SqlValue[]) {
    this.parts = parts;
    this.values = values;
  }
}

export function sql(parts: TemplateStringsArray, ...values: readonly (SqlValue | SqlQuery)[]): SqlQuery {
  // The common case passes the template's own array on: adapters cache prepared statements by its identity.
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

/** A comma-separated list of values, for `IN (…)` and `VALUES (…)`. */
export function sqlList(values: readonly SqlValue[]): SqlQuery {
  return joinSql(
    values.map((value) => sql`${value}`),
    ", ",
  );
}

/** Text that goes into the statement as it stands. Only for constants of the code, never for input. */
export function rawSql(text: string): SqlQuery {
  // Frozen as a template's array is: a constant that is kept is found again by its identity.
  return new SqlQuery(Object.freeze([text]), []);
}

function appendToLast(parts: string[], text: string): void {
  parts[parts.length - 1] += text;
}

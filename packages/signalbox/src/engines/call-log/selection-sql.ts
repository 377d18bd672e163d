/** Filters as SQL conditions on the `call` table. Input becomes a bound value, never text of the statement. */
import { joinSql, rawSql, sql, type SqlQuery, sqlList, type SqlValue } from "../../core/sql.ts";
import { CALL_COLUMNS, listColumns } from "./columns.ts";
import type { CallField, CallFilter, CallOperator, CallOrder, CallSelection } from "./selection.ts";

type ColumnField = Exclude<CallField, "metadataKey" | "metadataValue">;

const COLUMNS = listColumns(CALL_COLUMNS);

/** The SQL of every field that is not part of the metadata. */
export const FIELD_SQL = Object.fromEntries([
  ...COLUMNS.filter(({ filterable }) => filterable).map(({ name, sqlName }) => [name, rawSql(sqlName)]),
  ["tokens", rawSql("(tokens_in + tokens_out)")],
  ["isAuthenticated", rawSql("(token_id IS NOT NULL)")],
]) as Readonly<Record<ColumnField, SqlQuery>>;

export const ORDER_SQL = Object.fromEntries([
  ...COLUMNS.filter(({ sortable }) => sortable).map(({ name, sqlName }) => [name, rawSql(sqlName)]),
  // Ids are in the order of time, and indexed.
  ["createdAt", rawSql("id")],
]) as Readonly<Record<CallOrder, SqlQuery>>;

/** The value of a metadata entry as text, which filters compare with: `true`, `false` and `null` as in JSON, numbers in decimal. */
const ENTRY_VALUE = rawSql(
  "CASE entry.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE CAST(entry.value AS TEXT) END",
);
const ENTRY_KEY = rawSql("entry.key");
const COMPARISONS: Readonly<Record<Exclude<CallOperator, "eq" | "neq" | "contains">, SqlQuery>> = {
  lt: rawSql(" < "),
  gt: rawSql(" > "),
  lte: rawSql(" <= "),
  gte: rawSql(" >= "),
};

export function isEverything(selection: CallSelection): boolean {
  return selection.filters.length === 0 && selection.search === "";
}

/** The condition that selects rows of one gateway. */
export function whereSql(gatewayKey: number, selection: CallSelection): SqlQuery {
  return joinSql([sql`gateway = ${gatewayKey}`, ...filtersSql(selection)], " AND ");
}

/** The conditions of a selection, whatever the gateway. */
export function filtersSql(selection: CallSelection): SqlQuery[] {
  const conditions = filterConditions(selection.filters);
  if (selection.search !== "") {
    const pattern = likePattern(selection.search);
    conditions.push(
      someEntry(
        sql`(${ENTRY_KEY} LIKE ${pattern} ESCAPE '\\' OR ${ENTRY_VALUE} LIKE ${pattern} ESCAPE '\\')`,
      ),
    );
  }
  return conditions;
}

function filterConditions(filters: readonly CallFilter[]): SqlQuery[] {
  const conditions: SqlQuery[] = [];
  for (let i = 0; i < filters.length; i++) {
    const filter = filters[i];
    if (filter === undefined) continue;
    const next = filters[i + 1];
    if (filter.field === "metadataKey" && next?.field === "metadataValue") {
      conditions.push(entryCondition(filter, next));
      i++;
    } else if (filter.field === "metadataKey" || filter.field === "metadataValue") {
      conditions.push(entryCondition(filter));
    } else {
      conditions.push(comparison(FIELD_SQL[filter.field], filter.operator, filter.values));
    }
  }
  return conditions;
}

/** `neq` on a key means that no entry has the key; it does not mean that some entry has another key. */
function entryCondition(filter: CallFilter, valueFilter?: CallFilter): SqlQuery {
  if (valueFilter === undefined && filter.operator === "neq") {
    return sql`NOT ${someEntry(entryComparison({ ...filter, operator: "eq" }))}`;
  }
  return someEntry(
    valueFilter === undefined
      ? entryComparison(filter)
      : sql`${entryComparison(filter)} AND ${entryComparison(valueFilter)}`,
  );
}

function entryComparison({ field, operator, values }: CallFilter): SqlQuery {
  const texts = values.map((value) => (value === null ? "null" : String(value)));
  const isOrdered = operator !== "eq" && operator !== "neq" && operator !== "contains";
  // Numbers are compared as numbers: as texts, 10 comes before 9.
  if (
    field === "metadataValue" &&
    isOrdered &&
    values.every((value) => Number.isFinite(Number(value ?? "x")))
  ) {
    const number = comparison(rawSql("entry.value"), operator, values.map(Number));
    return sql`(entry.type IN ('integer', 'real') AND ${number})`;
  }
  return comparison(field === "metadataKey" ? ENTRY_KEY : ENTRY_VALUE, operator, texts);
}

function someEntry(condition: SqlQuery): SqlQuery {
  return sql`EXISTS (SELECT 1 FROM json_each(coalesce(metadata, '{}')) AS entry WHERE ${condition})`;
}

function comparison(column: SqlQuery, operator: CallOperator, values: readonly SqlValue[]): SqlQuery {
  const known = values.filter((value) => value !== null);
  const hasNull = known.length < values.length;
  switch (operator) {
    case "eq":
      return anyOf([
        ...(known.length > 0 ? [sql`${column} IN (${sqlList(known)})`] : []),
        ...(hasNull ? [sql`${column} IS NULL`] : []),
      ]);
    case "neq":
      return joinSql(
        [
          // Null is not equal to any value.
          known.length > 0 ? sql`(${column} IS NULL OR ${column} NOT IN (${sqlList(known)}))` : sql`1 = 1`,
          hasNull ? sql`${column} IS NOT NULL` : sql`1 = 1`,
        ],
        " AND ",
      );
    case "contains":
      return anyOf(known.map((value) => sql`${column} LIKE ${likePattern(String(value))} ESCAPE '\\'`));
    case "lt":
    case "gt":
    case "lte":
    case "gte": {
      const sign = COMPARISONS[operator];
      return anyOf(known.map((value) => sql`${column}${sign}${value}`));
    }
  }
}

function anyOf(conditions: readonly SqlQuery[]): SqlQuery {
  return conditions.length === 0 ? rawSql("1 = 0") : sql`(${joinSql(conditions, " OR ")})`;
}

function likePattern(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, (char) => `\\${char}`)}%`;
}

/** Filters as SQL conditions on the `call` table. Input only ever becomes a value, never text of the statement. */
import type { CallField, CallFilter, CallOperator, CallOrder, CallSelection } from "./call-log.ts";
import { joinSql, rawSql, sql, type SqlQuery, sqlList, type SqlValue } from "../../core/sql.ts";

const COLUMNS: Readonly<Record<Exclude<CallField, "metadataKey" | "metadataValue">, SqlQuery>> = {
  id: rawSql("id"),
  createdAt: rawSql("created_at"),
  provider: rawSql("provider"),
  model: rawSql("model"),
  path: rawSql("path"),
  requestType: rawSql("request_type"),
  requestContentType: rawSql("request_content_type"),
  responseContentType: rawSql("response_content_type"),
  statusCode: rawSql("status_code"),
  success: rawSql("success"),
  cached: rawSql("cached"),
  cost: rawSql("cost"),
  tokens: rawSql("(tokens_in + tokens_out)"),
  tokensIn: rawSql("tokens_in"),
  tokensOut: rawSql("tokens_out"),
  duration: rawSql("duration_ms"),
  feedback: rawSql("feedback"),
  eventId: rawSql("event_id"),
  userAgent: rawSql("user_agent"),
  isAuthenticated: rawSql("(token_id IS NOT NULL)"),
};

export const ORDER_COLUMNS: Readonly<Record<CallOrder, SqlQuery>> = {
  createdAt: rawSql("id"),
  provider: rawSql("provider"),
  model: rawSql("model"),
  requestType: rawSql("request_type"),
  success: rawSql("success"),
  cached: rawSql("cached"),
  cost: rawSql("cost"),
  tokensIn: rawSql("tokens_in"),
  tokensOut: rawSql("tokens_out"),
  duration: rawSql("duration_ms"),
  feedback: rawSql("feedback"),
};

/** `true`, `false` and `null` as JSON writes them, everything else as text, so that a filter's text compares with any kind of value. */
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

/** The condition for one gateway's rows that a selection asks for. */
export function whereSql(gatewayKey: number, selection: CallSelection): SqlQuery {
  const conditions = [sql`gateway = ${gatewayKey}`, ...filterConditions(selection.filters)];
  if (selection.search !== "") {
    const pattern = likePattern(selection.search);
    conditions.push(
      someEntry(
        sql`(${ENTRY_KEY} LIKE ${pattern} ESCAPE '\\' OR ${ENTRY_VALUE} LIKE ${pattern} ESCAPE '\\')`,
      ),
    );
  }
  return joinSql(conditions, " AND ");
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
      conditions.push(comparison(COLUMNS[filter.field], filter.operator, filter.values));
    }
  }
  return conditions;
}

/** "No entry with that key" is the opposite of "an entry with that key", not "an entry with another key". */
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
  // 10 comes after 9 among numbers; as text it would not.
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
          // Unknown is not equal to any given value.
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

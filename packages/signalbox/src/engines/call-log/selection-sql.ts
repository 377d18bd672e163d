/**
 * Filters as SQL conditions on the `call` table. Input becomes a bound value, never text of the statement.
 *
 * The two databases differ in how a text is searched, how the entries of the metadata are read, and how a value is bound (`SelectionDialect`).
 */
import { joinSql, rawSql, sql, type SqlQuery, type SqlValue } from "../../core/sql.ts";
import { CALL_COLUMNS, type Column, listColumns } from "./columns.ts";
import type { CallField, CallFilter, CallOperator, CallOrder, CallSelection } from "./selection.ts";

export interface SelectionDialect {
  /** 0 or 1. */
  readonly isAuthenticated: SqlQuery;
  /** Name of the metadata's entries in a `FROM` clause. */
  readonly entries: SqlQuery;
  /** The value of an entry as text: `true`, `false` and `null` as in JSON, numbers in decimal. */
  readonly entryText: SqlQuery;
  /** The value of an entry if it is a number; otherwise null. */
  readonly entryNumber: SqlQuery;
  /**
   * Holds at least for the rows whose metadata have an entry with this text in its key or value, and is much quicker than reading the entries. Default: reading
   * them is as quick.
   */
  mayHaveText?(text: string, isAnyCase: boolean): SqlQuery;
  /** A column as text. */
  asText(column: SqlQuery): SqlQuery;
  bind(value: SqlValue, isNumber: boolean): SqlQuery;
  /** The column contains the text, without regard to case. */
  contains(column: SqlQuery, text: string): SqlQuery;
}

type ColumnField = Exclude<CallField, "metadataKey" | "metadataValue">;

interface Field {
  readonly column: SqlQuery;
  readonly isNumber: boolean;
}

const COLUMNS = listColumns(CALL_COLUMNS);
const ENTRY_KEY = rawSql("entry.key");
const COMPARISONS: Readonly<Record<Exclude<CallOperator, "eq" | "neq" | "contains">, SqlQuery>> = {
  lt: rawSql(" < "),
  gt: rawSql(" > "),
  lte: rawSql(" <= "),
  gte: rawSql(" >= "),
};

export const ORDER_SQL = Object.fromEntries([
  ...COLUMNS.filter(({ sortable }) => sortable).map(({ name, sqlName }) => [name, rawSql(sqlName)]),
  // Ids are in the order of time, and indexed.
  ["createdAt", rawSql("id")],
]) as Readonly<Record<CallOrder, SqlQuery>>;

export function isEverything(selection: CallSelection): boolean {
  return selection.filters.length === 0 && selection.search === "";
}

/** Whether every match has this value in this field. */
export function requiresValue({ filters }: CallSelection, name: CallField, value: number): boolean {
  return filters.some(
    ({ field, operator, values }) =>
      field === name && operator === "eq" && values.length > 0 && values.every((one) => one === value),
  );
}

export function isNumberKind(kind: Column["kind"]): boolean {
  return kind !== "id" && kind !== "text" && kind !== "json";
}

export class SelectionSql {
  readonly #dialect: SelectionDialect;
  readonly #fields: Readonly<Record<ColumnField, Field>>;

  constructor(dialect: SelectionDialect) {
    this.#dialect = dialect;
    this.#fields = Object.fromEntries([
      ...COLUMNS.filter(({ filterable }) => filterable).map(({ name, sqlName, kind }) => [
        name,
        { column: rawSql(sqlName), isNumber: isNumberKind(kind) },
      ]),
      ["tokens", { column: rawSql("(tokens_in + tokens_out)"), isNumber: true }],
      ["isAuthenticated", { column: dialect.isAuthenticated, isNumber: true }],
    ]) as Readonly<Record<ColumnField, Field>>;
  }

  /** The SQL of a field that is not part of the metadata. */
  field(name: ColumnField): SqlQuery {
    return this.#fields[name].column;
  }

  /** The condition that selects rows of one gateway, which is given by its number or by a query for it. */
  where(gateway: number | SqlQuery, selection: CallSelection): SqlQuery {
    return joinSql([sql`gateway = ${gateway}`, ...this.conditions(selection)], " AND ");
  }

  /** The conditions of a selection, whatever the gateway. */
  conditions(selection: CallSelection): SqlQuery[] {
    const conditions = this.#filters(selection.filters);
    if (selection.search !== "") {
      const { entryText } = this.#dialect;
      const found = [ENTRY_KEY, entryText].map((column) => this.#dialect.contains(column, selection.search));
      conditions.push(...this.#mayHave([selection.search], true), this.#someEntry(anyOf(found)));
    }
    return conditions;
  }

  #filters(filters: readonly CallFilter[]): SqlQuery[] {
    const conditions: SqlQuery[] = [];
    for (let i = 0; i < filters.length; i++) {
      const filter = filters[i];
      if (filter === undefined) continue;
      const next = filters[i + 1];
      if (filter.field === "metadataKey" && next?.field === "metadataValue") {
        conditions.push(this.#entryCondition(filter, next));
        i++;
      } else if (filter.field === "metadataKey" || filter.field === "metadataValue") {
        conditions.push(this.#entryCondition(filter));
      } else {
        conditions.push(this.#comparison(this.#fields[filter.field], filter.operator, filter.values));
      }
    }
    return conditions;
  }

  /** `neq` on a key means that no entry has the key; it does not mean that some entry has another key. */
  #entryCondition(filter: CallFilter, valueFilter?: CallFilter): SqlQuery {
    if (valueFilter === undefined && filter.operator === "neq") {
      return sql`NOT ${this.#someEntry(this.#entryComparison({ ...filter, operator: "eq" }))}`;
    }
    const filters = valueFilter === undefined ? [filter] : [filter, valueFilter];
    const comparisons = filters.map((one) => this.#entryComparison(one));
    return joinSql(
      [...filters.flatMap((one) => this.#mayMatch(one)), this.#someEntry(joinSql(comparisons, " AND "))],
      " AND ",
    );
  }

  /** What the metadata of a row must have for an entry to match; nothing if that cannot be said. */
  #mayMatch({ operator, values }: CallFilter): SqlQuery[] {
    if (operator !== "eq" && operator !== "contains") return [];
    return this.#mayHave(values.map(entryTextOf), operator === "contains");
  }

  #mayHave(texts: readonly string[], isAnyCase: boolean): SqlQuery[] {
    const { mayHaveText } = this.#dialect;
    return mayHaveText === undefined ? [] : [anyOf(texts.map((text) => mayHaveText(text, isAnyCase)))];
  }

  #entryComparison({ field, operator, values }: CallFilter): SqlQuery {
    const { entryNumber, entryText } = this.#dialect;
    const isOrdered = operator !== "eq" && operator !== "neq" && operator !== "contains";
    // Numbers are compared as numbers: as texts, 10 comes before 9.
    const isNumber =
      field === "metadataValue" &&
      isOrdered &&
      values.every((value) => Number.isFinite(Number(value ?? "x")));
    if (isNumber) return this.#comparison({ column: entryNumber, isNumber }, operator, values.map(Number));
    const texts = values.map(entryTextOf);
    return this.#comparison(
      { column: field === "metadataKey" ? ENTRY_KEY : entryText, isNumber },
      operator,
      texts,
    );
  }

  #someEntry(condition: SqlQuery): SqlQuery {
    return sql`EXISTS (SELECT 1 FROM ${this.#dialect.entries} WHERE ${condition})`;
  }

  #comparison({ column, isNumber }: Field, operator: CallOperator, values: readonly SqlValue[]): SqlQuery {
    const known = values.filter((value) => value !== null);
    const hasNull = known.length < values.length;
    const bound = () =>
      joinSql(
        known.map((value) => this.#dialect.bind(value, isNumber)),
        ", ",
      );
    switch (operator) {
      case "eq":
        return anyOf([
          ...(known.length > 0 ? [sql`${column} IN (${bound()})`] : []),
          ...(hasNull ? [sql`${column} IS NULL`] : []),
        ]);
      case "neq":
        return joinSql(
          [
            // Null is not equal to any value.
            known.length > 0 ? sql`(${column} IS NULL OR ${column} NOT IN (${bound()}))` : sql`1 = 1`,
            hasNull ? sql`${column} IS NOT NULL` : sql`1 = 1`,
          ],
          " AND ",
        );
      case "contains": {
        const text = isNumber ? this.#dialect.asText(column) : column;
        return anyOf(known.map((value) => this.#dialect.contains(text, String(value))));
      }
      case "lt":
      case "gt":
      case "lte":
      case "gte": {
        const sign = COMPARISONS[operator];
        return anyOf(known.map((value) => sql`${column}${sign}${this.#dialect.bind(value, isNumber)}`));
      }
    }
  }
}

function entryTextOf(value: string | number | null): string {
  return value === null ? "null" : String(value);
}

function anyOf(conditions: readonly SqlQuery[]): SqlQuery {
  return conditions.length === 0 ? rawSql("1 = 0") : sql`(${joinSql(conditions, " OR ")})`;
}

/**
 * `ctx.storage.sql`: statements of the object on its own database.
 *
 * A cursor holds all rows: a statement runs to its end when `exec` is called. (The originals read rows as they are taken; a program sees the
 * difference only if it changes a table while it iterates over it.)
 */
import {
  type GuardedStatement,
  type RawRows,
  type RowLimits,
  SqlError,
} from "../../engines/instance-store/index.ts";
import { rawSql, type SqlValue } from "../../core/sql.ts";
import { unwrapCounters } from "./change-counters.ts";
import { readBindings } from "./sql-bindings.ts";
import type { StorageParts } from "./storage-parts.ts";

type CursorValue = string | number | null | ArrayBuffer;
type CursorRow = Record<string, CursorValue>;

const DATABASE_SIZE = rawSql(
  "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()",
);

const NO_STATEMENT = "SQL code did not contain a statement.";
const WRONG_COUNT = "Wrong number of parameter bindings for SQL query.";
const NO_TRANSACTIONS =
  "SQL statements cannot begin or end a transaction; use ctx.storage.transaction() or ctx.storage.transactionSync()";

/** As the originals do: any value becomes text, but a symbol is refused. */
const toText = (value: unknown): string => "".concat(value as string);

export class SqlStorage {
  readonly #parts: StorageParts;
  readonly Cursor = SqlStorageCursor;

  constructor(parts: StorageParts) {
    this.#parts = parts;
  }

  get [Symbol.toStringTag](): string {
    return "SqlStorage";
  }

  /** Bytes that the database occupies. */
  get databaseSize(): number {
    this.#parts.transactions.requirePresent();
    return this.#parts.database.get<{ bytes: number }>(DATABASE_SIZE)?.bytes ?? 0;
  }

  /** Runs one or more statements. The bindings and the rows belong to the last one. */
  exec(query: string, ...bindings: readonly unknown[]): SqlStorageCursor {
    return this.execWithin(undefined, query, bindings);
  }

  /** As `exec`; throws if the rows exceed the limits. */
  execWithin(limits: RowLimits | undefined, query: string, bindings: readonly unknown[]): SqlStorageCursor {
    const { counters, database, transactions } = this.#parts;
    transactions.requirePresent();
    const values = bindings.map(toSqlValue);
    const { count, text, isScript, changesRows, inserts, readsCounters } = readBindings(toText(query));
    if (count === null) throw new Error(NO_STATEMENT);
    try {
      if (readsCounters) counters.define();
      const statement = database.guardedStatement([text]);
      if (count !== values.length) throw new Error(WRONG_COUNT);
      if (statement.isWrite) transactions.open();
      let raw: RawRows;
      if (isScript) raw = counters.script(() => statement.allRaw(values, limits));
      else if (changesRows) raw = this.#change(statement, values, inserts, limits);
      else raw = statement.allRaw(values, limits);
      const columns = readsCounters ? raw.columns.map(unwrapCounters) : raw.columns;
      return new SqlStorageCursor(columns, raw.rows, statement.isWrite ? raw.changes : 0);
    } catch (error) {
      throw explain(error, query);
    }
  }

  /** Runs a statement whose changes the program may read. */
  #change(
    statement: GuardedStatement,
    values: readonly SqlValue[],
    inserts: boolean,
    limits: RowLimits | undefined,
  ): RawRows {
    const { counters } = this.#parts;
    try {
      const raw = statement.allRaw(values, limits);
      // `WITH` begins a selection, too.
      if (statement.isWrite) counters.wrote(raw.changes, inserts);
      return raw;
    } catch (error) {
      counters.failed();
      throw error;
    }
  }
}

/** The rows of one `exec`. All ways of reading share one position. */
export class SqlStorageCursor {
  readonly columnNames: readonly string[];
  readonly rowsWritten: number;
  readonly #rows: readonly SqlValue[][];
  #position = 0;

  constructor(columnNames: readonly string[], rows: readonly SqlValue[][], rowsWritten: number) {
    this.columnNames = columnNames;
    this.rowsWritten = rowsWritten;
    this.#rows = rows;
  }

  get [Symbol.toStringTag](): string {
    return "SqlStorageCursor";
  }

  get rowsRead(): number {
    return this.#rows.length;
  }

  next(): IteratorResult<CursorRow, undefined> {
    const row = this.#take();
    return row === undefined ? { done: true, value: undefined } : { done: false, value: this.#toObject(row) };
  }

  toArray(): CursorRow[] {
    return this.#takeAll().map((row) => this.#toObject(row));
  }

  /** The only row. Throws if there is none, or if there are more. */
  one(): CursorRow {
    const rows = this.#takeAll();
    const [row] = rows;
    if (row === undefined || rows.length > 1) {
      const found = row === undefined ? "no results" : "multiple results";
      throw new Error(`Expected exactly one result from SQL query, but got ${found}.`);
    }
    return this.#toObject(row);
  }

  /** The rows as arrays of values. */
  raw(): IteratorObject<CursorValue[], undefined> {
    return Iterator.from({
      next: (): IteratorResult<CursorValue[], undefined> => {
        const row = this.#take();
        return row === undefined
          ? { done: true, value: undefined }
          : { done: false, value: row.map(toCursorValue) };
      },
    });
  }

  [Symbol.iterator](): IteratorObject<CursorRow, undefined> {
    return Iterator.from({
      next: (): IteratorResult<CursorRow, undefined> => {
        const row = this.#take();
        return row === undefined
          ? { done: true, value: undefined }
          : { done: false, value: this.#toObject(row) };
      },
    });
  }

  #take(): SqlValue[] | undefined {
    const row = this.#rows[this.#position];
    if (row !== undefined) this.#position += 1;
    return row;
  }

  #takeAll(): SqlValue[][] {
    const rows = this.#rows.slice(this.#position);
    this.#position = this.#rows.length;
    return rows;
  }

  #toObject(row: readonly SqlValue[]): CursorRow {
    const object: CursorRow = {};
    this.columnNames.forEach((name, i) => {
      object[name] = toCursorValue(row[i] ?? null);
    });
    return object;
  }
}

function toCursorValue(value: SqlValue): CursorValue {
  if (value instanceof Uint8Array) return new Uint8Array(value).buffer;
  return typeof value === "bigint" ? Number(value) : value;
}

/** Values are text, numbers, bytes and null; undefined is null, and everything else is converted to text, as the originals do. */
function toSqlValue(value: unknown): SqlValue {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (typeof value === "number") return Number.isNaN(value) ? null : value;
  if (typeof value === "bigint") throw new TypeError("Cannot convert a BigInt value to a number");
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return toText(value);
}

/** The error as programs know it: the message of SQLite, and its code. */
function explain(error: unknown, text: string): unknown {
  if (!(error instanceof SqlError)) return error;
  const code = (error.cause as { errcode?: number } | undefined)?.errcode;
  if (/transactions are the runtime's/.test(error.message))
    return new Error(NO_TRANSACTIONS, { cause: error });
  const isRefused = error.cause instanceof Error && /not authorized|prohibited/.test(error.cause.message);
  const suffix = isRefused ? "SQLITE_AUTH" : codeName(code);
  const explained = new Error(suffix === null ? error.message : `${error.message}: ${suffix}`, {
    cause: error,
  });
  Object.defineProperty(explained, "query", { value: text, enumerable: false });
  return explained;
}

/** Names of the codes that statements of programs cause (SQLite's primary and extended result codes). */
const CODES: ReadonlyMap<number, string> = new Map([
  [1, "SQLITE_ERROR"],
  [13, "SQLITE_FULL"],
  [18, "SQLITE_TOOBIG"],
  [19, "SQLITE_CONSTRAINT"],
  [20, "SQLITE_MISMATCH"],
  [23, "SQLITE_AUTH"],
  [275, "SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_CHECK)"],
  [787, "SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)"],
  [1299, "SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)"],
  [1555, "SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY)"],
  [1811, "SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_TRIGGER)"],
  [2067, "SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)"],
  [2579, "SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_ROWID)"],
]);

function codeName(code: number | undefined): string | null {
  if (code === undefined) return null;
  return CODES.get(code) ?? CODES.get(code & 0xff) ?? null;
}

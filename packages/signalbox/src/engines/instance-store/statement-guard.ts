/**
 * Checks statements of foreign code, as the runtime of the originals does. SQLite calls the guard while it compiles a statement, so that a cached statement is not checked again.
 *
 * Refused: ATTACH, DETACH and VACUUM, transaction statements, every PRAGMA that `allowed-pragmas.ts` does not list, `load_extension`, temporary tables (they would be gone after the instance
 * has been idle), virtual tables but full-text and R*Tree, writes to reserved tables, triggers on reserved tables, and creating anything with a reserved name. Reading reserved
 * tables is allowed, and so is ANALYZE, which counts their rows, too.
 */
import { type Authorizer, SQLITE_ACTIONS as A } from "../sqlite-file/index.ts";
import { describesSchema, isAllowedPragma, isKnownPragma, writesAsPragma } from "./allowed-pragmas.ts";
import type { ReservedNames } from "./reserved-names.ts";

/** Actions that write, and which of the two names passed with an action is the table. */
const WRITES: ReadonlyMap<number, "first" | "second"> = new Map([
  [A.SQLITE_INSERT, "first"],
  [A.SQLITE_UPDATE, "first"],
  [A.SQLITE_DELETE, "first"],
  [A.SQLITE_CREATE_TABLE, "first"],
  [A.SQLITE_CREATE_VTABLE, "first"],
  [A.SQLITE_CREATE_VIEW, "first"],
  [A.SQLITE_CREATE_INDEX, "second"],
  [A.SQLITE_CREATE_TRIGGER, "second"],
  [A.SQLITE_DROP_TABLE, "first"],
  [A.SQLITE_DROP_VTABLE, "first"],
  [A.SQLITE_DROP_VIEW, "first"],
  [A.SQLITE_DROP_INDEX, "second"],
  [A.SQLITE_DROP_TRIGGER, "second"],
  [A.SQLITE_ALTER_TABLE, "second"],
  [A.SQLITE_REINDEX, "first"],
]);

const ROW_CHANGES: ReadonlySet<number> = new Set([A.SQLITE_INSERT, A.SQLITE_UPDATE, A.SQLITE_DELETE]);

/** Actions that create an index or a trigger; its name is the first of the two. */
const INDEXES_AND_TRIGGERS: ReadonlySet<number> = new Set([A.SQLITE_CREATE_INDEX, A.SQLITE_CREATE_TRIGGER]);

/** Actions that add or remove tables or constraints. */
const TABLE_CHANGES: ReadonlySet<number> = new Set([
  A.SQLITE_CREATE_TABLE,
  A.SQLITE_CREATE_VTABLE,
  A.SQLITE_DROP_TABLE,
  A.SQLITE_DROP_VTABLE,
  A.SQLITE_ALTER_TABLE,
]);

const NO_TRANSACTIONS = "transactions are the runtime's: statements cannot begin or end one";

const NO_TEMPORARY = "temporary tables, views, indexes and triggers are not allowed";

/** Full-text search and spatial indexes. Others read what is not the program's, such as the pages of the file. */
const MODULES: ReadonlySet<string> = new Set(["fts5", "fts5vocab", "rtree", "rtree_i32"]);
/** Virtual tables that exist without being created, and that tell of pages and statements of the runtime. */
const HIDDEN_TABLES: ReadonlySet<string> = new Set([
  "dbstat",
  "sqlite_dbpage",
  "sqlite_stmt",
  "bytecode",
  "tables_used",
]);

const REFUSED: ReadonlyMap<number, string> = new Map([
  [A.SQLITE_ATTACH, "attaching a file is not allowed"],
  [A.SQLITE_DETACH, "detaching a file is not allowed"],
  [A.SQLITE_TRANSACTION, NO_TRANSACTIONS],
  [A.SQLITE_SAVEPOINT, NO_TRANSACTIONS],
  [A.SQLITE_CREATE_TEMP_TABLE, NO_TEMPORARY],
  [A.SQLITE_CREATE_TEMP_VIEW, NO_TEMPORARY],
  [A.SQLITE_CREATE_TEMP_INDEX, NO_TEMPORARY],
  [A.SQLITE_CREATE_TEMP_TRIGGER, NO_TEMPORARY],
  [A.SQLITE_DROP_TEMP_TABLE, NO_TEMPORARY],
  [A.SQLITE_DROP_TEMP_VIEW, NO_TEMPORARY],
  [A.SQLITE_DROP_TEMP_INDEX, NO_TEMPORARY],
  [A.SQLITE_DROP_TEMP_TRIGGER, NO_TEMPORARY],
]);

/** True if the action neither writes nor is refused by the guard. */
export function mayRead(action: number, first: string | null, second: string | null): boolean {
  if (WRITES.has(action) || REFUSED.has(action) || action === A.SQLITE_ANALYZE) return false;
  if (action === A.SQLITE_PRAGMA) return describesSchema((first ?? "").toLowerCase());
  return !(action === A.SQLITE_FUNCTION && second?.toLowerCase() === "load_extension");
}

/** A guarded statement, and what the statement may do. */
export interface Compiled<T> {
  readonly statement: T;
  readonly isWrite: boolean;
  readonly changesTables: boolean;
  /** Tables that rows are inserted into, also by triggers, in lower case. */
  readonly inserts: ReadonlySet<string>;
  /** The actions of a trigger are known only when the trigger runs. */
  readonly createsTrigger: boolean;
}

const NO_TABLES: ReadonlySet<string> = new Set();

export class StatementGuard {
  /** False while a guarded statement compiles or runs (SQLite compiles a statement again after a schema change). */
  isTrusted = true;
  #isWrite = false;
  #changesTables = false;
  #createsTrigger = false;
  #altersTable = false;
  #inserts: Set<string> | null = null;
  #refusal: string | null = null;
  readonly #reserved: ReservedNames;

  constructor(reserved: ReservedNames) {
    this.#reserved = reserved;
  }

  readonly authorize: Authorizer = (action, first, second, database) => {
    if (this.isTrusted) return true;
    const tablePosition = WRITES.get(action);
    if (tablePosition !== undefined) {
      // A renaming changes rows of the temporary schema, too.
      if (database === "temp" && !ROW_CHANGES.has(action)) return this.#refuse(NO_TEMPORARY);
      this.#isWrite = true;
      if (TABLE_CHANGES.has(action)) this.#changesTables = true;
      else if (action === A.SQLITE_CREATE_TRIGGER) this.#createsTrigger = true;
      else if (action === A.SQLITE_INSERT && first !== null)
        (this.#inserts ??= new Set()).add(first.toLowerCase());
      if (action === A.SQLITE_ALTER_TABLE) this.#altersTable = true;
      const table = tablePosition === "first" ? first : second;
      if (this.#reserved.has(table)) return this.#refuse(`the table ${table} belongs to the runtime`);
      if (action === A.SQLITE_CREATE_VTABLE && !MODULES.has((second ?? "").toLowerCase()))
        return this.#refuse(`virtual tables of ${second ?? ""} are not allowed`);
      return INDEXES_AND_TRIGGERS.has(action) && this.#reserved.has(first)
        ? this.#refuse(`the name ${first} belongs to the runtime`)
        : true;
    }
    if (action === A.SQLITE_ANALYZE) this.#isWrite = true;
    const refusal = REFUSED.get(action);
    if (refusal !== undefined) return this.#refuse(refusal);
    if (action === A.SQLITE_PRAGMA) return this.#authorizePragma((first ?? "").toLowerCase(), second);
    if (action === A.SQLITE_READ && first !== null && HIDDEN_TABLES.has(first.toLowerCase()))
      return this.#refuse(`the table ${first} is not available`);
    if (action === A.SQLITE_FUNCTION && second?.toLowerCase() === "load_extension") {
      return this.#refuse("loading extensions is not allowed");
    }
    return true;
  };

  #authorizePragma(name: string, value: string | null): boolean {
    if (!isKnownPragma(name)) return this.#refuse(`PRAGMA ${name} is not allowed`);
    if (!isAllowedPragma(name, value, this.#reserved)) {
      return this.#refuse(
        `PRAGMA ${name} ${value === null ? "needs a value" : `with ${value} is not allowed`}`,
      );
    }
    if (writesAsPragma(name)) this.#isWrite = true;
    return true;
  }

  /** Compiles a guarded statement; throws if the guard refuses the statement. */
  compile<T extends { readonly text: string }>(prepare: () => T): Compiled<T> {
    this.isTrusted = false;
    this.#isWrite = false;
    this.#changesTables = false;
    this.#createsTrigger = false;
    this.#altersTable = false;
    this.#inserts = null;
    this.#refusal = null;
    try {
      const statement = prepare();
      const name = this.#altersTable ? this.#reserved.findRename(statement.text) : undefined;
      if (name !== undefined) {
        this.#refuse(`the name ${name} belongs to the runtime`);
        throw new Error("not authorized");
      }
      return {
        statement,
        isWrite: this.#isWrite,
        changesTables: this.#changesTables,
        inserts: this.#inserts ?? NO_TABLES,
        createsTrigger: this.#createsTrigger,
      };
    } finally {
      this.isTrusted = true;
    }
  }

  /** Runs a guarded statement. */
  run<T>(statement: () => T): T {
    this.isTrusted = false;
    this.#refusal = null;
    try {
      return statement();
    } finally {
      this.isTrusted = true;
    }
  }

  /** Why the last statement was refused; null if it was not refused. */
  get refusal(): string | null {
    return this.#refusal;
  }

  #refuse(reason: string): false {
    this.#refusal = reason;
    return false;
  }
}

/** True if the text contains more than blanks, comments and semicolons. */
export function hasStatement(text: string): boolean {
  return text.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]+/g, "") !== "";
}

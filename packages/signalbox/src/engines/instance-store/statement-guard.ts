/**
 * What SQL of an agent's own code may do in the instance's database. SQLite asks the guard while it compiles a statement, so a
 * statement that is used again costs nothing.
 *
 * Refused: other files (ATTACH, DETACH, VACUUM), transaction statements (the runtime owns them), settings (PRAGMA, except those that
 * only describe the schema), loading extensions, writing to or hanging triggers on the runtime's tables (`_signalbox_…`), and giving
 * anything of the agent's a name that the runtime may want. Reading the runtime's tables is allowed.
 */
import { type Authorizer, SQLITE_ACTIONS as A } from "../sqlite-file/index.ts";

/** Names of the runtime's own tables begin with this. */
const RESERVED_PREFIX = "_signalbox_";
/** A full-text table of this name would have tables `_signalbox_data`, `_signalbox_idx`, … beside it. */
const RESERVED_NAME = "_signalbox";

/**
 * The end of a `RENAME TO` (or `RENAME COLUMN … TO`) with a reserved name. SQLite's guard is told the old name alone, so the new one is
 * read from the text: names have no escapes, so a reserved one stands there as it is, in one of the four quotes or none.
 */
const RENAMED_TO_RESERVED =
  /\bTO(?:\s|--[^\n]*(?:\n|$)|\/\*(?:[^*]|\*(?!\/))*\*\/)*["'`[]?(_signalbox(?:_[^\s"'`\];]*|(?![^\s"'`\];/-])))/i;

/** Settings that only tell about the schema. */
const HARMLESS_PRAGMAS: ReadonlySet<string> = new Set([
  "foreign_key_list",
  "index_info",
  "index_list",
  "index_xinfo",
  "table_info",
  "table_list",
  "table_xinfo",
]);

/** Which of the two names an action carries is the table's. */
const WRITES: ReadonlyMap<number, "first" | "second"> = new Map([
  [A.SQLITE_INSERT, "first"],
  [A.SQLITE_UPDATE, "first"],
  [A.SQLITE_DELETE, "first"],
  [A.SQLITE_CREATE_TABLE, "first"],
  [A.SQLITE_CREATE_TEMP_TABLE, "first"],
  [A.SQLITE_CREATE_VTABLE, "first"],
  [A.SQLITE_CREATE_VIEW, "first"],
  [A.SQLITE_CREATE_TEMP_VIEW, "first"],
  [A.SQLITE_CREATE_INDEX, "second"],
  [A.SQLITE_CREATE_TEMP_INDEX, "second"],
  [A.SQLITE_CREATE_TRIGGER, "second"],
  [A.SQLITE_CREATE_TEMP_TRIGGER, "second"],
  [A.SQLITE_DROP_TABLE, "first"],
  [A.SQLITE_DROP_TEMP_TABLE, "first"],
  [A.SQLITE_DROP_VTABLE, "first"],
  [A.SQLITE_DROP_VIEW, "first"],
  [A.SQLITE_DROP_TEMP_VIEW, "first"],
  [A.SQLITE_DROP_INDEX, "second"],
  [A.SQLITE_DROP_TEMP_INDEX, "second"],
  [A.SQLITE_DROP_TRIGGER, "second"],
  [A.SQLITE_DROP_TEMP_TRIGGER, "second"],
  [A.SQLITE_ALTER_TABLE, "second"],
  [A.SQLITE_ANALYZE, "first"],
  [A.SQLITE_REINDEX, "first"],
]);

/** What gives something else than a table a name, which is then the first of the two. */
const NAMED_BESIDE_TABLES: ReadonlySet<number> = new Set([
  A.SQLITE_CREATE_INDEX,
  A.SQLITE_CREATE_TEMP_INDEX,
  A.SQLITE_CREATE_TRIGGER,
  A.SQLITE_CREATE_TEMP_TRIGGER,
]);

/** What adds or removes tables and their constraints. */
const TABLE_CHANGES: ReadonlySet<number> = new Set([
  A.SQLITE_CREATE_TABLE,
  A.SQLITE_CREATE_TEMP_TABLE,
  A.SQLITE_CREATE_VTABLE,
  A.SQLITE_DROP_TABLE,
  A.SQLITE_DROP_TEMP_TABLE,
  A.SQLITE_DROP_VTABLE,
  A.SQLITE_ALTER_TABLE,
]);

const TRIGGERS: ReadonlySet<number> = new Set([A.SQLITE_CREATE_TRIGGER, A.SQLITE_CREATE_TEMP_TRIGGER]);

const REFUSED: ReadonlyMap<number, string> = new Map([
  [A.SQLITE_ATTACH, "attaching a file is not allowed"],
  [A.SQLITE_DETACH, "detaching a file is not allowed"],
  [A.SQLITE_TRANSACTION, "transactions are the runtime's: what a turn writes between two awaits is one"],
  [A.SQLITE_SAVEPOINT, "transactions are the runtime's: what a turn writes between two awaits is one"],
]);

/** True for a statement that only reads: nothing the guard refuses, nothing that writes. */
export function mayRead(action: number, first: string | null, second: string | null): boolean {
  if (WRITES.has(action) || REFUSED.has(action)) return false;
  if (action === A.SQLITE_PRAGMA) return HARMLESS_PRAGMAS.has((first ?? "").toLowerCase());
  return !(action === A.SQLITE_FUNCTION && second?.toLowerCase() === "load_extension");
}

/** A statement of the agent's, and what it may do when it runs. */
export interface Compiled<T> {
  readonly statement: T;
  readonly isWrite: boolean;
  readonly changesTables: boolean;
  /** Tables that rows are inserted into, also by triggers, in small letters. */
  readonly inserts: ReadonlySet<string>;
  /** What its trigger will do is only known when the trigger is run. */
  readonly createsTrigger: boolean;
}

const NO_TABLES: ReadonlySet<string> = new Set();

export class StatementGuard {
  /** True while the runtime's own statements compile or run (SQLite compiles again after a schema change). */
  isTrusted = true;
  #isWrite = false;
  #changesTables = false;
  #createsTrigger = false;
  #altersTable = false;
  #inserts: Set<string> | null = null;
  #refusal: string | null = null;

  readonly authorize: Authorizer = (action, first, second) => {
    if (this.isTrusted) return true;
    const tableSide = WRITES.get(action);
    if (tableSide !== undefined) {
      this.#isWrite = true;
      if (TABLE_CHANGES.has(action)) this.#changesTables = true;
      else if (TRIGGERS.has(action)) this.#createsTrigger = true;
      else if (action === A.SQLITE_INSERT && first !== null)
        (this.#inserts ??= new Set()).add(first.toLowerCase());
      if (action === A.SQLITE_ALTER_TABLE) this.#altersTable = true;
      const table = tableSide === "first" ? first : second;
      if (isReserved(table)) return this.#refuse(`the table ${table} belongs to the runtime`);
      return NAMED_BESIDE_TABLES.has(action) && isReserved(first)
        ? this.#refuse(`the name ${first} belongs to the runtime`)
        : true;
    }
    const refusal = REFUSED.get(action);
    if (refusal !== undefined) return this.#refuse(refusal);
    if (action === A.SQLITE_PRAGMA && !HARMLESS_PRAGMAS.has((first ?? "").toLowerCase())) {
      return this.#refuse(`PRAGMA ${first ?? ""} is not allowed`);
    }
    if (action === A.SQLITE_FUNCTION && second?.toLowerCase() === "load_extension") {
      return this.#refuse("loading extensions is not allowed");
    }
    return true;
  };

  /** Compiles one of the agent's statements and tells what it does. */
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
      const name = this.#altersTable ? RENAMED_TO_RESERVED.exec(statement.text)?.[1] : undefined;
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

  /** Runs one of the agent's statements. */
  run<T>(statement: () => T): T {
    this.isTrusted = false;
    this.#refusal = null;
    try {
      return statement();
    } finally {
      this.isTrusted = true;
    }
  }

  /** Why the last statement was refused, in words; null when it was not. */
  get refusal(): string | null {
    return this.#refusal;
  }

  #refuse(reason: string): false {
    this.#refusal = reason;
    return false;
  }
}

function isReserved(name: string | null): boolean {
  const small = name?.toLowerCase();
  return small !== undefined && (small.startsWith(RESERVED_PREFIX) || small === RESERVED_NAME);
}

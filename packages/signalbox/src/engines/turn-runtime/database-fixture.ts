/** A real SQLite database in memory for the tests, with a disk that tests control: `sync` makes durable what was committed before it began. */
import { DatabaseSync } from "node:sqlite";
import { rawSql, sql, type SqlQuery, type SqlValue } from "../../core/sql.ts";
import type { TurnDatabase } from "./turn-database.ts";

export class TestDatabase implements TurnDatabase {
  readonly #database = new DatabaseSync(":memory:");
  /** Notes that are durable. */
  durable: ReadonlySet<string> = new Set();
  #committed: ReadonlySet<string> = new Set();
  commits = 0;
  syncs = 0;
  /** Set to make the next commits or syncs fail. */
  commitFailure: Error | null = null;
  syncFailure: Error | null = null;
  tableChanges = 0;

  constructor() {
    this.#database.exec("PRAGMA foreign_keys = ON");
    this.run(rawSql("CREATE TABLE note (text TEXT UNIQUE)"));
  }

  get<Row>(query: SqlQuery): Row | undefined {
    return this.#prepare(query).get(...bound(query)) as Row | undefined;
  }

  run(query: SqlQuery): void {
    this.#prepare(query).run(...bound(query));
  }

  /** A statement that may change the schema. */
  define(text: string): void {
    this.tableChanges += 1;
    this.#database.exec(text);
  }

  insert(text: string): void {
    this.run(sql`INSERT INTO note (text) VALUES (${text})`);
  }

  notes(): string[] {
    const rows = this.#database.prepare("SELECT text FROM note ORDER BY rowid").all() as { text: string }[];
    return rows.map(({ text }) => text);
  }

  begin(): void {
    this.#database.exec("BEGIN");
  }

  commit(): void {
    if (this.commitFailure !== null) throw this.commitFailure;
    this.#database.exec("COMMIT");
    this.commits += 1;
    this.#committed = new Set(this.notes());
  }

  rollback(): void {
    if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
  }

  flush(): null {
    return null;
  }

  readonly sync = async (): Promise<void> => {
    const covered = this.#committed;
    this.syncs += 1;
    await new Promise((resolve) => setImmediate(resolve));
    if (this.syncFailure !== null) throw this.syncFailure;
    this.durable = covered;
  };

  close(): void {
    this.#database.close();
  }

  #prepare({ parts }: SqlQuery) {
    return this.#database.prepare(parts.join("?"));
  }
}

function bound({ values }: SqlQuery): SqlValue[] {
  return [...values];
}

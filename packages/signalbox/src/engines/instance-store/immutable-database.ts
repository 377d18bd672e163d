/**
 * A closed database, opened for reading on a full disk: a usual open creates a WAL, which needs room.
 *
 * A closed database has no WAL, so it is opened as `immutable`: SQLite neither locks the file nor searches for a WAL. The caller must not open the
 * database for writing at the same time.
 * See README.md.
 */
import { pathToFileURL } from "node:url";
import type { SqlQuery } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";
import type { GuardedStatement, InstanceDatabase } from "./instance-store.ts";

export class ImmutableDatabase implements InstanceDatabase {
  readonly isNew = false;
  readonly tableChanges = 0;
  readonly ownChanges = 0;
  readonly #connection: SqliteConnection;

  constructor(path: string) {
    const url = pathToFileURL(path);
    url.searchParams.set("immutable", "1");
    this.#connection = SqliteConnection.open(url, { readOnly: true, takesQuotedText: true });
  }

  all<Row>(query: SqlQuery): Row[] {
    return this.#connection.all<Row>(query);
  }

  get<Row>(query: SqlQuery): Row | undefined {
    return this.#connection.get<Row>(query);
  }

  run(): never {
    throw refusal();
  }

  guardedStatement(): GuardedStatement {
    throw refusal();
  }

  addFunction(name: string, work: (...values: bigint[]) => number | bigint): void {
    this.#connection.addFunction(name, work);
  }

  begin(): never {
    throw refusal();
  }

  commit(): never {
    throw refusal();
  }

  rollback(): void {}

  flush(): null {
    return null;
  }

  sync(): Promise<void> {
    return Promise.resolve();
  }

  snapshot(): Uint8Array {
    return this.#connection.serialize();
  }

  close(): Promise<void> {
    this.#connection.close();
    return Promise.resolve();
  }
}

const refusal = () => new Error("the database was opened for reading");

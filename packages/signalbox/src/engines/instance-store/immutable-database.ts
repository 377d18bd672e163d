/**
 * The database of an instance that is not in memory, for reading on a full disk: opening it as usual would need room for a log.
 *
 * Its file is whole, since an instance leaves memory only when its log is in its file; so SQLite is told that nobody changes the file (`immutable`),
 * and neither locks it nor looks for a log. The caller sees to it that the instance is not opened meanwhile.
 */
import { pathToFileURL } from "node:url";
import type { AgentStatement, InstanceDatabase } from "./instance-store.ts";
import type { SqlQuery } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";

export class SleepingDatabase implements InstanceDatabase {
  readonly isNew = false;
  readonly tableChanges = 0;
  readonly #connection: SqliteConnection;

  constructor(path: string) {
    const url = pathToFileURL(path);
    url.searchParams.set("immutable", "1");
    this.#connection = SqliteConnection.open(url, { readOnly: true });
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

  agentStatement(): AgentStatement {
    throw refusal();
  }

  begin(): never {
    throw refusal();
  }

  commit(): never {
    throw refusal();
  }

  rollback(): void {}

  secure(): void {}

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

const refusal = () => new Error("a sleeping instance's database can only be read");

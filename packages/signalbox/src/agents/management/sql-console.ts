/**
 * Operators' queries on copies of instances' databases, each in a process of its own (`queryReadOnly`).
 *
 * Invariants:
 * 1. At most `MAX_RUNNING` processes and copies exist; `MAX_WAITING` queries wait without a copy, and more are refused.
 * 2. A database that is too large is refused before it is copied.
 */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import {
  type InstanceDatabase,
  type InstanceStore,
  type QueryResult,
  SqlError,
} from "../../engines/instance-store/index.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import { sql } from "../../core/sql.ts";
import type { Directory } from "../instance/directory.ts";

const MEBIBYTE = 1024 * 1024;
/** Two, so that one slow query does not delay the next operator. */
const MAX_RUNNING = 2;
/** With five seconds per query the last one waits about 20 seconds. */
const MAX_WAITING = 8;
/** An instance larger than this is not copied. */
const MAX_SNAPSHOT_BYTES = 64 * MEBIBYTE;
/** The process may need three times the size of the copy: the message, SQLite's memory database, and pages for sorting. */
const LIMITS = { maxRows: 1000, maxBytes: 4 * MEBIBYTE, timeoutMs: 5000, maxMemoryBytes: 384 * MEBIBYTE };

export class SqlConsole {
  readonly #directory: Pick<Directory, "read">;
  readonly #store: Pick<InstanceStore, "queryReadOnly">;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(directory: Pick<Directory, "read">, store: Pick<InstanceStore, "queryReadOnly">) {
    this.#directory = directory;
    this.#store = store;
  }

  /** Throws `overloaded` when too many queries wait, and `agent_sql` for an error of the statement. */
  async query(ref: InstanceRef, text: string): Promise<QueryResult> {
    await this.#enter();
    try {
      const snapshot = await this.#directory.read(ref, "sql", ({ database }) => copyOf(database));
      return await this.#store.queryReadOnly(snapshot, text, LIMITS);
    } catch (error) {
      if (error instanceof SqlError) throw new SignalboxError("agent_sql", { message: error.message });
      throw error;
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<void> {
    if (this.#running < MAX_RUNNING) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) {
      throw overloaded("Too many queries are running", { "retry-after": "5" });
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** The query that has waited longest, if any, takes the place. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }
}

function copyOf(database: InstanceDatabase): Uint8Array {
  const { bytes } = database.get<{ bytes: number }>(
    sql`SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size`,
  ) ?? { bytes: 0 };
  if (bytes > MAX_SNAPSHOT_BYTES) {
    throw new SignalboxError("agent_sql", {
      message: `The instance's database is larger than ${MAX_SNAPSHOT_BYTES} bytes`,
    });
  }
  return database.snapshot();
}

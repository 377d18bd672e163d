/** The day files that the writer has open: few at a time, since a connection holds memory and a log beside its file. */
import { rawSql, sql } from "../../core/sql.ts";
import { type SqliteConnection, syncFolder } from "../sqlite-file/index.ts";
import { CallInserts } from "./call-inserts.ts";
import { type Day, dayPath, listDays, removeDay } from "./day-files.ts";
import { openDayForWriting } from "./day-schema.ts";

/** Today, yesterday around midnight, and one that is being changed. */
const MAX_OPEN_DAYS = 3;
const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

export interface OpenDay {
  readonly connection: SqliteConnection;
  readonly inserts: CallInserts;
  readonly gatewayKeys: Map<string, number>;
  nextSeq: number;
}

export class OpenDays {
  readonly #folder: string;
  readonly #maxBodyBytes: number;
  /** Most recently used last. */
  readonly #days = new Map<Day, OpenDay>();

  constructor(folder: string, maxBodyBytes: number) {
    this.#folder = folder;
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** All that there are, open or not, oldest first. */
  list(): Day[] {
    return listDays(this.#folder);
  }

  existing(day: Day): OpenDay | undefined {
    return this.#days.has(day) || this.list().includes(day) ? this.get(day) : undefined;
  }

  /** Opened, and made if it is not there. */
  get(day: Day): OpenDay {
    const open = this.#days.get(day) ?? this.#open(day);
    this.#days.delete(day);
    this.#days.set(day, open);
    return open;
  }

  remove(day: Day): void {
    this.#close(day);
    removeDay(this.#folder, day);
  }

  close(): void {
    for (const day of this.#days.keys()) this.#close(day);
  }

  #open(day: Day): OpenDay {
    const [oldest] = this.#days.keys();
    if (this.#days.size >= MAX_OPEN_DAYS && oldest !== undefined) this.#close(oldest);
    const connection = openDayForWriting(dayPath(this.#folder, day));
    syncFolder(this.#folder);
    const last = connection.get<{ seq: number | null }>(sql`SELECT max(seq) AS seq FROM call`)?.seq ?? 0;
    return {
      connection,
      inserts: new CallInserts(connection, this.#maxBodyBytes),
      gatewayKeys: new Map(),
      nextSeq: last + 1,
    };
  }

  #close(day: Day): void {
    const connection = this.#days.get(day)?.connection;
    this.#days.delete(day);
    if (connection === undefined) return;
    // A closed day is one file; busy readers only delay that.
    connection.get(rawSql("PRAGMA wal_checkpoint(TRUNCATE)"));
    connection.close();
  }
}

export function begin(connection: SqliteConnection): void {
  connection.run(BEGIN);
}

export function commit(connection: SqliteConnection): void {
  connection.run(COMMIT);
}

export function transaction<T>(connection: SqliteConnection, work: () => T): T {
  begin(connection);
  try {
    const result = work();
    commit(connection);
    return result;
  } catch (error) {
    connection.rollback();
    throw error;
  }
}

/** The day files that the writer has open: few at a time, because a connection holds memory and a WAL beside its file. */
import { syncFolder } from "../durable-file/index.ts";
import { rawSql, sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { CallInserts } from "./call-inserts.ts";
import { LaterVersionError, migrateDayFile, openDayFile, transaction } from "./day-file.ts";
import { type Day, dayPath, listDays, removeDay } from "./day-files.ts";
import { countDeltas, mergeTotals } from "./day-totals.ts";

/** The current day, the day before (around midnight), and one whose rows are deleted or edited. */
const MAX_OPEN_DAYS = 3;

/** An open day file, of the current or an earlier version. */
export interface OpenDay {
  readonly connection: SqliteConnection;
  readonly gatewayKeys: Map<string, number>;
  nextSeq: number;
  /** Deltas of the totals that are not merged. */
  deltas: number;
  /** Absent until the first change: the file may have an earlier version. */
  inserts?: CallInserts;
}

/** A day file of the current version. */
export interface WritableDay extends OpenDay {
  inserts: CallInserts;
}

export class OpenDays {
  readonly #folder: string;
  readonly #maxBodyBytes: number;
  readonly #hasTotals: boolean;
  /** The most recently used last. */
  readonly #days = new Map<Day, OpenDay>();
  /** Whether this release can read the file of a day. */
  readonly #isReadable = new Map<Day, boolean>();

  constructor(folder: string, maxBodyBytes: number, hasTotals: boolean) {
    this.#folder = folder;
    this.#maxBodyBytes = maxBodyBytes;
    this.#hasTotals = hasTotals;
  }

  /** All days with a file that this release can read, oldest first. */
  list(): Day[] {
    return listDays(this.#folder).filter((day) => this.#canRead(day));
  }

  /** Days whose file has a later version, oldest first. */
  listUnreadable(): Day[] {
    return listDays(this.#folder).filter((day) => !this.#canRead(day));
  }

  has(day: Day): boolean {
    return this.#days.has(day) || this.list().includes(day);
  }

  /** Opens a day of any version up to the current one; creates the file if there is none. */
  get(day: Day): OpenDay {
    const open = this.#days.get(day) ?? this.#open(day);
    this.#days.delete(day);
    this.#days.set(day, open);
    return open;
  }

  /** Opens a day for changes of its calls; migrates a file of an earlier version. */
  writable(day: Day): WritableDay {
    const open = this.get(day);
    if (open.inserts === undefined) migrateDayFile(open.connection);
    open.inserts ??= new CallInserts(open.connection, this.#maxBodyBytes, this.#hasTotals);
    return open as WritableDay;
  }

  get open(): Day[] {
    return [...this.#days.keys()];
  }

  /** Merges the deltas of a day's totals if there are at least `count`. */
  mergeTotals(day: Day, count: number): void {
    const open = this.#days.get(day);
    if (open === undefined || open.deltas < count) return;
    transaction(open.connection, () => mergeTotals(open.connection));
    open.deltas = 0;
  }

  remove(day: Day): void {
    this.#close(day);
    this.#isReadable.delete(day);
    removeDay(this.#folder, day);
  }

  close(): void {
    for (const day of this.#days.keys()) this.#settle(day);
  }

  #canRead(day: Day): boolean {
    const known = this.#isReadable.get(day);
    if (known !== undefined) return known;
    try {
      this.get(day);
      return true;
    } catch (error) {
      if (error instanceof LaterVersionError) return false;
      throw error;
    }
  }

  #open(day: Day): OpenDay {
    const [oldest] = this.#days.keys();
    if (this.#days.size >= MAX_OPEN_DAYS && oldest !== undefined) this.#settle(oldest);
    const connection = this.#openFile(day);
    syncFolder(this.#folder);
    const last = connection.get<{ seq: number | null }>(sql`SELECT max(seq) AS seq FROM call`)?.seq ?? 0;
    return { connection, gatewayKeys: new Map(), nextSeq: last + 1, deltas: countDeltas(connection) };
  }

  #openFile(day: Day): SqliteConnection {
    try {
      const connection = openDayFile(dayPath(this.#folder, day));
      this.#isReadable.set(day, true);
      return connection;
    } catch (error) {
      if (error instanceof LaterVersionError) this.#isReadable.set(day, false);
      throw error;
    }
  }

  /** Closes a file that stays. */
  #settle(day: Day): void {
    try {
      this.mergeTotals(day, 1);
    } catch {
      // For example a full disk. The deltas stay, and are read as they are.
    }
    this.#close(day);
  }

  #close(day: Day): void {
    const connection = this.#days.get(day)?.connection;
    this.#days.delete(day);
    if (connection === undefined) return;
    // Leaves a single file. A busy reader delays the checkpoint until a later close.
    connection.get(rawSql("PRAGMA wal_checkpoint(TRUNCATE)"));
    connection.close();
  }
}

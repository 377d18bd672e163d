/**
 * The disk space of the day files, from SQLite's page counters: nothing is scanned, and a restart reads the same values.
 *
 * Free pages count, because they are not given back to the disk by themselves. In the newest file they do not count: the next calls use them.
 */
import { rawSql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { pageBytesOf } from "./day-file.ts";
import type { Day } from "./day-files.ts";

const PAGE_COUNT = rawSql("PRAGMA page_count");
const FREELIST_COUNT = rawSql("PRAGMA freelist_count");

export interface FileSize {
  readonly bytes: number;
  /** Part of `bytes` in free pages. */
  readonly freeBytes: number;
}

export function readFileSize(connection: SqliteConnection): FileSize {
  const pageBytes = pageBytesOf(connection);
  const pages = connection.get<{ page_count: number }>(PAGE_COUNT)?.page_count ?? 0;
  const free = connection.get<{ freelist_count: number }>(FREELIST_COUNT)?.freelist_count ?? 0;
  return { bytes: pages * pageBytes, freeBytes: free * pageBytes };
}

export class LogSize {
  readonly #files = new Map<Day, FileSize>();
  #newest: Day = "";

  set(day: Day, size: FileSize): void {
    this.#files.set(day, size);
    if (day > this.#newest) this.#newest = day;
  }

  delete(day: Day): void {
    this.#files.delete(day);
    if (day === this.#newest) this.#newest = [...this.#files.keys()].sort().at(-1) ?? "";
  }

  clear(): void {
    this.#files.clear();
    this.#newest = "";
  }

  get bytes(): number {
    let sum = -(this.#files.get(this.#newest)?.freeBytes ?? 0);
    for (const { bytes } of this.#files.values()) sum += bytes;
    return sum;
  }

  /** Files with free pages, oldest first, without the newest. */
  get shrinkable(): Day[] {
    return [...this.#files]
      .filter(([day, { freeBytes }]) => day !== this.#newest && freeBytes > 0)
      .map(([day]) => day)
      .sort();
  }
}

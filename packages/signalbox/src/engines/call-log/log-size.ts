/**
 * How much disk the day files take, by their own page counters: nothing is scanned, and a restart finds the same figures.
 *
 * Pages that deletions left free count, because the disk does not get them back by itself. In the newest file they do not: the next
 * calls are written into them.
 */
import { rawSql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { Day } from "./day-files.ts";

const PAGE_SIZE = rawSql("PRAGMA page_size");
const PAGE_COUNT = rawSql("PRAGMA page_count");
const FREELIST_COUNT = rawSql("PRAGMA freelist_count");

export interface FileSize {
  readonly bytes: number;
  /** Part of `bytes` that holds nothing. */
  readonly freeBytes: number;
}

export function readFileSize(connection: SqliteConnection): FileSize {
  const pageSize = connection.get<{ page_size: number }>(PAGE_SIZE)?.page_size ?? 0;
  const pages = connection.get<{ page_count: number }>(PAGE_COUNT)?.page_count ?? 0;
  const free = connection.get<{ freelist_count: number }>(FREELIST_COUNT)?.freelist_count ?? 0;
  return { bytes: pages * pageSize, freeBytes: free * pageSize };
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

  /** Free pages of it are used again. */
  get newest(): Day {
    return this.#newest;
  }

  get bytes(): number {
    let sum = -(this.#files.get(this.#newest)?.freeBytes ?? 0);
    for (const { bytes } of this.#files.values()) sum += bytes;
    return sum;
  }

  /** Files that are larger than what they hold, oldest first; without the newest. */
  get shrinkable(): Day[] {
    return [...this.#files]
      .filter(([day, { freeBytes }]) => day !== this.#newest && freeBytes > 0)
      .map(([day]) => day)
      .sort();
  }
}

/**
 * Keeps the day files together below a size (invariant 8): removes the oldest bodies of all days first and, when no body is left, the oldest
 * rows. Usage stays until its day expires.
 *
 * The file of a past day is shrunk at once. In the newest file, free pages are kept for the next calls.
 * See README.md.
 */
import { sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { Day } from "./day-files.ts";
import type { GatewayRows } from "./gateway-rows.ts";
import { LogSize, readFileSize } from "./log-size.ts";
import { transaction } from "./day-file.ts";
import type { OpenDays } from "./open-days.ts";
import type { RemovedForSize } from "./worker-messages.ts";
import { hasBodies, hasRows, removeOldestBodies, removeOldestRows, shrinkFile } from "./remove-oldest.ts";

export class SizeLimit {
  readonly #days: OpenDays;
  readonly #rows: GatewayRows;
  readonly #maxTotalBytes: number;
  readonly #size = new LogSize();
  /** Days that have none left, so that their files are not opened for every trim. */
  readonly #withoutBodies = new Set<Day>();
  readonly #withoutRows = new Set<Day>();
  #removed: RemovedForSize = { bodies: 0, rows: 0 };

  constructor(days: OpenDays, rows: GatewayRows, maxTotalBytes: number) {
    this.#days = days;
    this.#rows = rows;
    this.#maxTotalBytes = maxTotalBytes;
  }

  /** Size of all day files. */
  get bytes(): number {
    return this.#size.bytes;
  }

  get removed(): RemovedForSize {
    return this.#removed;
  }

  /** Reads the size of a file again after a change. */
  measure(day: Day): void {
    this.#size.set(day, readFileSize(this.#days.get(day).connection));
  }

  /** Calls were added to a day. */
  added(day: Day): void {
    this.#withoutBodies.delete(day);
    this.#withoutRows.delete(day);
    this.measure(day);
  }

  removedDay(day: Day): void {
    this.#size.delete(day);
    this.#withoutBodies.delete(day);
    this.#withoutRows.delete(day);
  }

  clear(): void {
    this.#size.clear();
    this.#withoutBodies.clear();
    this.#withoutRows.clear();
  }

  /** Removes one chunk; true if more must be removed and something is left. */
  trim(): boolean {
    if (!this.#isExceeded) return false;
    return (this.#shrink() || this.#removeBodies() || this.#removeRows()) && this.#isExceeded;
  }

  get #isExceeded(): boolean {
    return this.#size.bytes > this.#maxTotalBytes;
  }

  #shrink(): boolean {
    for (const day of this.#size.shrinkable) {
      if (!shrinkFile(this.#days.get(day).connection)) continue;
      this.measure(day);
      return true;
    }
    return false;
  }

  #removeBodies(): boolean {
    const day = this.#oldestWith(hasBodies, this.#withoutBodies);
    if (day === undefined) return false;
    const { connection } = this.#days.get(day);
    const excess = this.#size.bytes - this.#maxTotalBytes;
    const bodies = transaction(connection, () => removeOldestBodies(connection, excess));
    this.#removed = { ...this.#removed, bodies: this.#removed.bodies + bodies };
    this.measure(day);
    return true;
  }

  #removeRows(): boolean {
    const day = this.#oldestWith(hasRows, this.#withoutRows);
    if (day === undefined) return false;
    const { connection } = this.#days.get(day);
    const counts = transaction(connection, () => removeOldestRows(connection));
    for (const [key, count] of counts) {
      this.#removed = { ...this.#removed, rows: this.#removed.rows + count };
      const gateway = connection.get<{ account_id: string; gateway_id: string }>(
        sql`SELECT account_id, gateway_id FROM gateway WHERE key = ${key}`,
      );
      if (gateway === undefined) continue;
      this.#rows.add({ accountId: gateway.account_id, gatewayId: gateway.gateway_id }, -count);
    }
    this.measure(day);
    return true;
  }

  #oldestWith(hasSome: (connection: SqliteConnection) => boolean, without: Set<Day>): Day | undefined {
    for (const day of this.#days.list()) {
      if (without.has(day)) continue;
      if (hasSome(this.#days.get(day).connection)) return day;
      without.add(day);
    }
    return undefined;
  }
}

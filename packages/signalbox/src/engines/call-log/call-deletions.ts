/** Deletes the rows of a gateway with their bodies, in transactions that are short enough for batches to be written in between. */
import { setImmediate } from "node:timers/promises";
import { sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import type { GatewayRef } from "./call-log.ts";
import { findGatewayKey, transaction } from "./day-file.ts";
import { type Day, dayOfId } from "./day-files.ts";
import type { GatewayRows } from "./gateway-rows.ts";
import type { OpenDays } from "./open-days.ts";
import type { CallSelection } from "./selection.ts";
import type { SizeLimit } from "./size-limit.ts";
import { SQLITE_SELECTION } from "./sqlite-selection.ts";

/** Rows in one transaction: about ten milliseconds. */
const CHUNK_ROWS = 2000;

/** The condition on the rows of a gateway, given the gateway's number in a file. */
type Condition = (gatewayKey: number) => SqlQuery;

export class CallDeletions {
  readonly #days: OpenDays;
  readonly #rows: GatewayRows;
  readonly #size: SizeLimit;

  constructor(days: OpenDays, rows: GatewayRows, size: SizeLimit) {
    this.#days = days;
    this.#rows = rows;
    this.#size = size;
  }

  /** Oldest day first; resolves with the number of rows deleted. */
  async deleteMatching(gateway: GatewayRef, selection: CallSelection): Promise<number> {
    return this.#deleteAll(gateway, (key) => SQLITE_SELECTION.where(key, selection));
  }

  async deleteGateway(gateway: GatewayRef): Promise<void> {
    await this.#deleteAll(gateway, (key) => sql`gateway = ${key}`);
  }

  async deleteIds(gateway: GatewayRef, ids: readonly string[]): Promise<number> {
    let deleted = 0;
    for (let start = 0; start < ids.length; start += CHUNK_ROWS) {
      const byDay = Map.groupBy(ids.slice(start, start + CHUNK_ROWS), dayOfId);
      for (const [day, some] of byDay) {
        const condition: Condition = (key) => sql`gateway = ${key} AND id IN (${sqlList(some)})`;
        deleted += this.#deleteSome(day, gateway, condition, some.length);
      }
      await setImmediate();
    }
    return deleted;
  }

  /** Deletes up to `count` of the oldest rows, at most a chunk. */
  deleteOldest(gateway: GatewayRef, count: number): void {
    let left = Math.min(count, CHUNK_ROWS);
    for (const day of left > 0 ? this.#days.list() : []) {
      if (left <= 0) break;
      left -= this.#deleteSome(day, gateway, (key) => sql`gateway = ${key}`, left);
    }
  }

  async #deleteAll(gateway: GatewayRef, condition: Condition): Promise<number> {
    let deleted = 0;
    for (const day of this.#days.list()) {
      for (;;) {
        const some = this.#deleteSome(day, gateway, condition, CHUNK_ROWS);
        deleted += some;
        await setImmediate();
        if (some < CHUNK_ROWS) break;
      }
    }
    return deleted;
  }

  /** Deletes up to `limit` rows of a day, oldest first; returns their number. */
  #deleteSome(day: Day, gateway: GatewayRef, condition: Condition, limit: number): number {
    if (!this.#days.has(day)) return 0;
    const found = findGatewayKey(this.#days.get(day).connection, gateway.accountId, gateway.gatewayId);
    if (found === undefined) return 0;
    const { connection } = this.#days.writable(day);
    const seqs = connection
      .all<{ seq: number }>(
        sql`SELECT seq FROM call WHERE ${condition(found.key)} ORDER BY id LIMIT ${limit}`,
      )
      .map((row) => row.seq);
    if (seqs.length === 0) return 0;
    transaction(connection, () => {
      for (const seq of seqs) {
        connection.run(sql`DELETE FROM call WHERE seq = ${seq}`);
        connection.run(sql`DELETE FROM body WHERE place IN (${seq * 2}, ${seq * 2 + 1})`);
      }
      connection.run(sql`UPDATE gateway SET rows = rows - ${seqs.length} WHERE key = ${found.key}`);
    });
    this.#rows.add(gateway, -seqs.length);
    this.#size.measure(day);
    return seqs.length;
  }
}

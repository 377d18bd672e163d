/** Edits and deletions of stored calls, in transactions that are short enough for rows to be written in between. */
import { sql, type SqlQuery } from "../../../core/sql.ts";
import type { CallPatch, GatewayRef } from "../call-log.ts";
import type { CallSelection } from "../selection.ts";
import { conditionOf, keySql } from "./call-queries.ts";
import type { CallDatabase } from "./call-tables.ts";
import { type DayStart, dayStartOf } from "./days.ts";
import { CHUNK_ROWS, deleteRows } from "./delete-calls.ts";
import { storableJson } from "./storable.ts";

/** Statements of two nodes are correct in any order. */
const SCOPE = { scope: "call_log", isConcurrent: true };

export class CallChanges {
  readonly #database: CallDatabase;

  constructor(database: CallDatabase) {
    this.#database = database;
  }

  async edit(gateway: GatewayRef, id: string, patch: CallPatch): Promise<boolean> {
    const { feedback, score } = patch;
    const metadata = patch.metadata == null ? patch.metadata : storableJson(patch.metadata);
    const settings: SqlQuery[] = [sql`gateway = gateway`];
    if (feedback !== undefined) settings.push(sql`feedback = ${feedback}`);
    if (score !== undefined) settings.push(sql`score = ${score}`);
    if (metadata !== undefined) settings.push(sql`metadata = ${metadata}`);
    const assignments = settings.reduce((all, one) => sql`${all}, ${one}`);
    const { changes } = await this.#database.transaction(async (tx) => {
      const edited = await tx.run(
        sql`UPDATE call_log SET ${assignments} WHERE gateway = ${keySql(gateway)} AND id = ${id}`,
      );
      // A new version of the row: what is kept of the day has changed (`day-reads.ts`).
      await tx.run(
        sql`UPDATE call_log_count SET rows = rows WHERE gateway = ${keySql(gateway)} AND day = ${dayStartOf(id)}`,
      );
      return edited;
    }, SCOPE);
    return changes === 1;
  }

  async deleteMatching(gateway: GatewayRef, selection: CallSelection): Promise<number> {
    const key = await this.#keyOf(gateway);
    return key === null ? 0 : this.#deleteAll(key, conditionOf(key, selection));
  }

  async deleteIds(gateway: GatewayRef, ids: readonly string[]): Promise<number> {
    const key = await this.#keyOf(gateway);
    if (key === null) return 0;
    let deleted = 0;
    for (const [day, some] of Map.groupBy(ids, dayStartOf)) {
      for (let start = 0; start < some.length; start += CHUNK_ROWS) {
        const chunk = some.slice(start, start + CHUNK_ROWS);
        // One value: ids contain no comma.
        const condition = sql`gateway = ${key} AND id = ANY (string_to_array(${chunk.join(",")}, ','))`;
        deleted += await this.#deleteSome(key, day, condition);
      }
    }
    return deleted;
  }

  /** The rows, bodies and usage of a gateway. Its number stays: a node may still have rows of it in its queue. */
  async dropGateway(gateway: GatewayRef): Promise<void> {
    const key = await this.#keyOf(gateway);
    if (key === null) return;
    await this.#deleteAll(key, sql`gateway = ${key}`);
    await this.#database.transaction(async (tx) => {
      // In the order in which rows are written: counts before hours.
      await tx.run(sql`DELETE FROM call_log_count WHERE gateway = ${key} AND rows = 0`);
      await tx.run(sql`DELETE FROM call_log_hour WHERE gateway = ${key}`);
      // Deltas first: those that are being merged become totals.
      await tx.run(sql`DELETE FROM call_log_totals_delta WHERE gateway = ${key}`);
      await tx.run(sql`DELETE FROM call_log_totals WHERE gateway = ${key}`);
    }, SCOPE);
  }

  async #deleteAll(key: number, condition: SqlQuery): Promise<number> {
    const days = await this.#database.all<{ day: DayStart }>(
      sql`SELECT day FROM call_log_count WHERE gateway = ${key} AND rows > 0 ORDER BY day`,
    );
    let total = 0;
    for (const { day } of days) {
      for (;;) {
        const deleted = await this.#deleteSome(key, day, condition);
        total += deleted;
        if (deleted < CHUNK_ROWS) break;
      }
    }
    return total;
  }

  #deleteSome(key: number, day: DayStart, condition: SqlQuery): Promise<number> {
    return this.#database.transaction((tx) => deleteRows(tx, key, day, condition, CHUNK_ROWS), SCOPE);
  }

  async #keyOf(gateway: GatewayRef): Promise<number | null> {
    const row = await this.#database.get<{ key: number }>(
      sql`SELECT key FROM call_log_gateway WHERE account_id = ${gateway.accountId} AND gateway_id = ${gateway.gatewayId}`,
    );
    return row?.key ?? null;
  }
}

/**
 * Applies `deleteOldest` quotas and the size limit (invariant 8), in short transactions. Of all nodes, one at a time does it.
 *
 * The size is the size of the stored rows and bodies, which every transaction adds to `call_log_day`: PostgreSQL's files do not become smaller
 * when rows are deleted. The space is used again by the next rows of the day. A past day that has no body (or no row) left gives its space
 * back to the disk. See ../README.md.
 */
import type { Client } from "pg";
import { sql } from "../../../core/sql.ts";
import type { CallQuota, GatewayRef } from "../call-log.ts";
import { DAY_MS } from "../day-files.ts";
import { gatewayOf, keyOf } from "../gateway-rows.ts";
import type { RemovedForSize } from "../worker-messages.ts";
import { asQueryable } from "./client-queries.ts";
import { type DayStart, partitionSuffix } from "./days.ts";
import { CHUNK_ROWS, deleteOldestBodies, deleteOldestRows, deleteRows } from "./delete-calls.ts";

/** Arbitrary key of an advisory lock, the same in every version. */
const TRIM_LOCK = 0x5347_0011;
const CHUNK_BYTES = 4 * 1024 * 1024;
/** The size is read at most this often while it is below the limit. */
const MEASURE_MS = 1000;

const COUNT_ROWS = `
SELECT g.account_id AS "accountId", g.gateway_id AS "gatewayId", g.key, sum(c.rows)::float8 AS rows
FROM call_log_gateway AS g JOIN call_log_count AS c ON c.gateway = g.key
WHERE (g.account_id, g.gateway_id) IN (SELECT * FROM unnest($1::text[], $2::text[])) GROUP BY g.key`;

export class Trim {
  readonly #maxTotalBytes: number;
  /** Gateways whose quota may be exceeded, by `keyOf`. */
  readonly #grown = new Set<string>();
  #bytes = 0;
  #measuredAt = Number.NEGATIVE_INFINITY;
  #removed: RemovedForSize = { bodies: 0, rows: 0 };

  constructor(maxTotalBytes: number) {
    this.#maxTotalBytes = maxTotalBytes;
  }

  /** Of all nodes, as of the last measurement. */
  get bytes(): number {
    return this.#bytes;
  }

  /** By this thread. */
  get removed(): RemovedForSize {
    return this.#removed;
  }

  /** Calls of the gateway were added, or its quota has changed. */
  check(gateway: string): void {
    this.#grown.add(gateway);
  }

  /** Deletes at most a chunk per gateway and one of the whole log; true if more is left. */
  async run(client: Client, quotas: ReadonlyMap<string, CallQuota>): Promise<boolean> {
    const isMoreLeft = await this.#applyQuotas(client, quotas);
    return (await this.#limitSize(client)) || isMoreLeft;
  }

  async #applyQuotas(client: Client, quotas: ReadonlyMap<string, CallQuota>): Promise<boolean> {
    const names = [...this.#grown].filter((name) => quotas.get(name)?.whenFull === "deleteOldest");
    this.#grown.clear();
    if (names.length === 0) return false;
    const refs = names.map(gatewayOf);
    const { rows: counts } = await client.query<GatewayRef & { key: number; rows: number }>(COUNT_ROWS, [
      refs.map(({ accountId }) => accountId),
      refs.map(({ gatewayId }) => gatewayId),
    ]);
    for (const { key, rows, ...gateway } of counts) {
      const name = keyOf(gateway);
      const maxRows = quotas.get(name)?.maxRows ?? 0;
      if (rows > maxRows && (await deleteSurplus(client, key, maxRows))) this.#grown.add(name);
    }
    return this.#grown.size > 0;
  }

  async #limitSize(client: Client): Promise<boolean> {
    if (performance.now() - this.#measuredAt < MEASURE_MS) return false;
    await this.#measure(client);
    const excess = this.#bytes - this.#maxTotalBytes;
    if (excess <= 0) return false;
    const hasRemoved = await exclusively(client, () => this.#remove(client, excess));
    await this.#measure(client);
    const isMoreLeft = hasRemoved === true && this.#bytes > this.#maxTotalBytes;
    if (isMoreLeft) this.#measuredAt = Number.NEGATIVE_INFINITY;
    return isMoreLeft;
  }

  async #measure(client: Client): Promise<void> {
    const row = await asQueryable(client).get<{ bytes: number }>(
      sql`SELECT coalesce(sum(row_bytes + body_bytes), 0)::float8 AS bytes FROM call_log_day`,
    );
    this.#bytes = row?.bytes ?? 0;
    this.#measuredAt = performance.now();
  }

  /** False if nothing is left to remove. */
  async #remove(client: Client, excess: number): Promise<boolean> {
    const tx = asQueryable(client);
    const withBodies = await tx.get<{ day: number }>(
      sql`SELECT day FROM call_log_day WHERE bodies > 0 ORDER BY day LIMIT 1`,
    );
    if (withBodies !== undefined) {
      const { day } = withBodies;
      const { deleted, remaining } = await deleteOldestBodies(tx, day, Math.min(excess, CHUNK_BYTES));
      this.#removed = { ...this.#removed, bodies: this.#removed.bodies + deleted };
      if (deleted === 0)
        await tx.run(sql`UPDATE call_log_day SET bodies = 0, body_bytes = 0 WHERE day = ${day}`);
      if (deleted === 0 || remaining === 0) await giveBack(client, "call_log_body", day);
      return true;
    }
    const withRows = await tx.get<{ day: number }>(
      sql`SELECT day FROM call_log_day WHERE rows > 0 ORDER BY day LIMIT 1`,
    );
    if (withRows === undefined) return false;
    const { day } = withRows;
    const { deleted, remaining } = await deleteOldestRows(tx, day);
    this.#removed = { ...this.#removed, rows: this.#removed.rows + deleted };
    if (deleted === 0) await tx.run(sql`UPDATE call_log_day SET rows = 0, row_bytes = 0 WHERE day = ${day}`);
    if (deleted === 0 || remaining === 0) await giveBack(client, "call_log", day);
    return true;
  }
}

/** True if more is left. */
async function deleteSurplus(client: Client, gateway: number, maxRows: number): Promise<boolean> {
  const isMoreLeft = await exclusively(client, async () => {
    const tx = asQueryable(client);
    const days = await tx.all<{ day: number; rows: number }>(
      sql`SELECT day, rows FROM call_log_count WHERE gateway = ${gateway} AND rows > 0 ORDER BY day`,
    );
    const surplus = days.reduce((sum, { rows }) => sum + rows, 0) - maxRows;
    let left = Math.min(surplus, CHUNK_ROWS);
    for (const { day } of days) {
      if (left <= 0) break;
      left -= await deleteRows(tx, gateway, day, sql`gateway = ${gateway}`, left);
    }
    return surplus > CHUNK_ROWS;
  });
  // Null: another node applies a quota at the moment, perhaps this one.
  return isMoreLeft ?? false;
}

/** Runs the work in a transaction unless another node trims the log; then null. */
export async function exclusively(client: Client, work: () => Promise<boolean>): Promise<boolean | null> {
  await client.query("BEGIN");
  try {
    const { rows } = await client.query<{ locked: boolean }>(
      `SELECT pg_try_advisory_xact_lock(${TRIM_LOCK}) AS locked`,
    );
    const result = rows[0]?.locked === true ? await work() : null;
    await client.query("COMMIT");
    return result;
  } catch (error) {
    // A broken connection rolls back by itself; the caller needs the first error.
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

/** Truncates the partition of a past day if it is empty. If a reader holds it, autovacuum gives the space back later. */
async function giveBack(client: Client, table: "call_log" | "call_log_body", day: DayStart): Promise<void> {
  // A clock may be behind: the newest days are left alone.
  if (Date.now() < day + 2 * DAY_MS) return;
  const partition = `${table}_${partitionSuffix(day)}`;
  await client.query("SAVEPOINT space");
  try {
    await client.query(`SET LOCAL lock_timeout = '200ms'; LOCK TABLE ${partition} IN ACCESS EXCLUSIVE MODE`);
    const { rowCount } = await client.query(`SELECT 1 FROM ${partition} LIMIT 1`);
    if (rowCount === 0) await client.query(`TRUNCATE ${partition}`);
  } catch {
    // The partition is in use; its space is given back later.
    await client.query("ROLLBACK TO SAVEPOINT space");
  }
}

/** Number of rows of each gateway over all days, so that quotas need no scan. */
import type { GatewayRef } from "./call-log.ts";
import { sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";

export class GatewayRows {
  readonly #rows = new Map<string, number>();

  clear(): void {
    this.#rows.clear();
  }

  of(key: string): number {
    return this.#rows.get(key) ?? 0;
  }

  add(gateway: GatewayRef, change: number): void {
    const key = keyOf(gateway);
    const rows = this.of(key) + change;
    if (rows === 0) this.#rows.delete(key);
    else this.#rows.set(key, rows);
  }

  /** Adds or subtracts the row counts of a day file. */
  addDay(connection: SqliteConnection, sign: 1 | -1): void {
    for (const row of connection.all<{ account_id: string; gateway_id: string; rows: number }>(
      sql`SELECT account_id, gateway_id, rows FROM gateway`,
    )) {
      this.add({ accountId: row.account_id, gatewayId: row.gateway_id }, sign * row.rows);
    }
  }
}

/** Ids of accounts and gateways contain no line feed. */
export function keyOf(gateway: GatewayRef): string {
  return `${gateway.accountId}\n${gateway.gatewayId}`;
}

export function gatewayOf(key: string): GatewayRef {
  const [accountId = "", gatewayId = ""] = key.split("\n");
  return { accountId, gatewayId };
}

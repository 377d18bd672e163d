/** One transaction that adds calls to a day file, together with the usage and the row counts that include them (invariant 5). */
import { sql } from "../../core/sql.ts";
import type { CallQuota, GatewayRef } from "./call-log.ts";
import { begin, commit, findGatewayKey } from "./day-file.ts";
import { addTotals } from "./day-totals.ts";
import { type GatewayRows, keyOf } from "./gateway-rows.ts";
import { BatchUsage } from "./batch-usage.ts";
import type { WritableDay } from "./open-days.ts";
import type { PackedRow } from "./packed-row.ts";

interface GatewayWrite {
  /** Number of the gateway in the file. */
  readonly key: number;
  readonly gateway: GatewayRef;
  readonly quota: CallQuota | undefined;
  /** Rows of all days before this transaction. */
  readonly rowsBefore: number;
  rows: number;
}

export class DayWrite {
  readonly #day: WritableDay;
  readonly #rows: GatewayRows;
  readonly #quotas: ReadonlyMap<string, CallQuota>;
  readonly #hasTotals: boolean;
  readonly #firstSeq: number;
  readonly #usage = new BatchUsage();
  readonly #gateways = new Map<string, GatewayWrite>();
  #last: GatewayWrite | null = null;

  /** Begins the transaction. */
  constructor(
    day: WritableDay,
    rows: GatewayRows,
    quotas: ReadonlyMap<string, CallQuota>,
    hasTotals: boolean,
  ) {
    this.#day = day;
    this.#hasTotals = hasTotals;
    this.#rows = rows;
    this.#quotas = quotas;
    this.#firstSeq = day.nextSeq;
    begin(day.connection);
  }

  /** A call that the file has already is neither added nor counted (invariant 2); a call beyond a quota is counted only. */
  add(call: PackedRow): void {
    const day = this.#day;
    const gateway = this.#gatewayOf(call);
    const { quota } = gateway;
    const isFull = quota?.whenFull === "stop" && gateway.rowsBefore + gateway.rows >= quota.maxRows;
    if (!isFull) {
      if (!day.inserts.insert(day.nextSeq, gateway.key, call)) return;
      day.nextSeq += 1;
      gateway.rows += 1;
    }
    this.#usage.add(call, gateway.key);
  }

  commit(): void {
    const { connection } = this.#day;
    for (const { key, rows } of this.#gateways.values()) {
      if (rows > 0) connection.run(sql`UPDATE gateway SET rows = rows + ${rows} WHERE key = ${key}`);
    }
    for (const upsert of this.#usage.upserts()) connection.run(upsert);
    const deltas = this.#hasTotals ? this.#usage.totals() : [];
    addTotals(connection, deltas);
    commit(connection);
    this.#day.deltas += deltas.length;
    for (const { gateway, rows } of this.#gateways.values()) this.#rows.add(gateway, rows);
  }

  rollback(): void {
    this.#day.connection.rollback();
    // The rollback also removed the gateways that were new to the file.
    this.#day.gatewayKeys.clear();
    this.#day.nextSeq = this.#firstSeq;
  }

  #gatewayOf(call: PackedRow): GatewayWrite {
    const last = this.#last;
    // Successive calls mostly belong to the same gateway.
    if (last?.gateway.accountId === call.accountId && last.gateway.gatewayId === call.gatewayId) return last;
    const { accountId, gatewayId } = call;
    const name = keyOf(call);
    let gateway = this.#gateways.get(name);
    if (gateway === undefined) {
      gateway = {
        key: this.#gatewayKey(name, call),
        gateway: { accountId, gatewayId },
        quota: this.#quotas.get(name),
        rowsBefore: this.#rows.of(name),
        rows: 0,
      };
      this.#gateways.set(name, gateway);
    }
    this.#last = gateway;
    return gateway;
  }

  #gatewayKey(name: string, { accountId, gatewayId }: GatewayRef): number {
    const { connection, gatewayKeys } = this.#day;
    let key = gatewayKeys.get(name);
    if (key === undefined) {
      connection.run(
        sql`INSERT INTO gateway (account_id, gateway_id) VALUES (${accountId}, ${gatewayId}) ON CONFLICT DO NOTHING`,
      );
      key = findGatewayKey(connection, accountId, gatewayId)?.key ?? 0;
      gatewayKeys.set(name, key);
    }
    return key;
  }
}

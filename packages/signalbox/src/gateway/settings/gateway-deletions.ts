/**
 * Deletes what belongs to a deleted gateway: its tokens, stored calls and tags. They are in different stores, so one transaction cannot
 * cover them.
 *
 *   recorded (with the deletion of the gateway's row) → steps → record removed
 *
 * Invariants:
 * 1. The gateway's row and the record of its deletion change in one transaction, so a crash cannot leave data without a record.
 * 2. Steps can be repeated. An interrupted deletion is finished at the next start, before the service accepts requests, or when the name
 *    is used again.
 * 3. No gateway is created under a name whose deletion is not finished: it would show data of the old one.
 */
import type { Database, Queryable } from "../../database/database.ts";
import type { GatewayRef } from "../../engines/call-log/index.ts";
import { sql } from "../../core/sql.ts";

/** Deletes one kind of data of a deleted gateway. */
export type DeletionStep = (gateway: GatewayRef) => Promise<void>;

export class GatewayDeletions {
  readonly #database: Database;
  readonly #steps: readonly DeletionStep[];
  /** Recorded and not finished. */
  readonly #pending = new Map<string, GatewayRef>();
  readonly #running = new Map<string, Promise<void>>();

  constructor(database: Database, steps: readonly DeletionStep[]) {
    this.#database = database;
    this.#steps = steps;
  }

  async load(): Promise<void> {
    const rows = await this.#database.all<{ account_id: string; gateway_id: string }>(
      sql`SELECT account_id, gateway_id FROM gateway_deletion`,
    );
    for (const row of rows) this.added({ accountId: row.account_id, gatewayId: row.gateway_id });
  }

  /** Runs in the transaction that deletes the gateway's row; call `added` after the commit. */
  async record(tx: Queryable, gateway: GatewayRef, now: number): Promise<void> {
    await tx.run(
      sql`INSERT INTO gateway_deletion (account_id, gateway_id, deleted_at)
          VALUES (${gateway.accountId}, ${gateway.gatewayId}, ${now}) ON CONFLICT (account_id, gateway_id) DO NOTHING`,
    );
  }

  added(gateway: GatewayRef): void {
    this.#pending.set(keyOf(gateway), gateway);
  }

  /** Resolves when no data of the deleted gateway is left. Rejects when a step failed. */
  async finish(gateway: GatewayRef): Promise<void> {
    const key = keyOf(gateway);
    if (!this.#pending.has(key)) return;
    let running = this.#running.get(key);
    if (running === undefined) {
      running = this.#run(gateway).finally(() => this.#running.delete(key));
      this.#running.set(key, running);
    }
    await running;
  }

  /** Runs at the start. A deletion that fails again stops neither the others nor the service. */
  async finishAll(onError: (gateway: GatewayRef, error: unknown) => void): Promise<void> {
    for (const gateway of this.#pending.values()) {
      try {
        await this.finish(gateway);
      } catch (error) {
        onError(gateway, error);
      }
    }
  }

  async #run(gateway: GatewayRef): Promise<void> {
    for (const step of this.#steps) await step(gateway);
    await this.#database.run(
      sql`DELETE FROM gateway_deletion WHERE account_id = ${gateway.accountId} AND gateway_id = ${gateway.gatewayId}`,
    );
    this.#pending.delete(keyOf(gateway));
  }
}

function keyOf({ accountId, gatewayId }: GatewayRef): string {
  return `${accountId}/${gatewayId}`;
}

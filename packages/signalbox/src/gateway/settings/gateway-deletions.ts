/**
 * What has to go when a gateway goes: its tokens, stored calls and tags, each in a storage of its own, so not in one transaction.
 *
 *   recorded (with the deletion of the gateway's row) → steps → record removed
 *
 * Invariants:
 * 1. A gateway's row and the record of its deletion change in one transaction: what a crash or a failing disk leaves is known.
 * 2. Steps can be repeated. A deletion that was interrupted is finished at the next start, before anything is served, or when its
 *    name is used again.
 * 3. No gateway is created under a name whose deletion is not finished: it would show what the old one left.
 */
import type { Database, Queryable } from "../../database/database.ts";
import type { GatewayRef } from "../../engines/call-log/index.ts";
import { sql } from "../../core/sql.ts";

/** Removes one kind of thing that belongs to a deleted gateway. */
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

  /** Part of the transaction that deletes the gateway's row; `added` follows when it is committed. */
  async record(tx: Queryable, gateway: GatewayRef, now: number): Promise<void> {
    await tx.run(
      sql`INSERT INTO gateway_deletion (account_id, gateway_id, deleted_at)
          VALUES (${gateway.accountId}, ${gateway.gatewayId}, ${now}) ON CONFLICT (account_id, gateway_id) DO NOTHING`,
    );
  }

  added(gateway: GatewayRef): void {
    this.#pending.set(keyOf(gateway), gateway);
  }

  /** Resolves when nothing of a deleted gateway is left; at once when there is nothing to do. Rejects when a step failed. */
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

  /** At the start: one deletion that still cannot be finished does not hold up the others, nor the service. */
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

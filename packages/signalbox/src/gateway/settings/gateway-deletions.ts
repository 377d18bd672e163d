/**
 * Deletes what belongs to a deleted gateway: its tokens, stored calls and tags. They are in different stores, so one transaction cannot
 * cover them.
 *
 *   recorded (with the deletion of the gateway's row) → steps → record removed
 *
 * Invariants:
 * 1. The gateway's row and the record of its deletion change in one transaction, so a crash cannot leave data without a record.
 * 2. Steps can be repeated. An interrupted deletion is finished at the next start of a node, before it accepts requests, or when the name is
 *    used again.
 * 3. No gateway is created under a name whose deletion is not finished: it would show data of the old one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Database, Queryable } from "../../database/database.ts";
import type { GatewayRef } from "../../engines/call-log/index.ts";
import { sql } from "../../core/sql.ts";

/** How long a node waits for the deletion of another one, which may have been killed. */
const MAX_WAIT_MS = 5000;
const POLL_MS = 50;

/** Deletes one kind of data of a deleted gateway. */
export type DeletionStep = (gateway: GatewayRef) => Promise<void>;

export class GatewayDeletions {
  readonly #database: Database;
  readonly #steps: readonly DeletionStep[];
  readonly #isShared: boolean;
  readonly #running = new Map<string, Promise<void>>();

  /** `isShared`: other nodes delete gateways, too. */
  constructor(database: Database, steps: readonly DeletionStep[], isShared = false) {
    this.#database = database;
    this.#steps = steps;
    this.#isShared = isShared;
  }

  /** Runs in the transaction that deletes the gateway's row. */
  async record(tx: Queryable, gateway: GatewayRef, now: number): Promise<void> {
    await tx.run(
      sql`INSERT INTO gateway_deletion (account_id, gateway_id, deleted_at)
          VALUES (${gateway.accountId}, ${gateway.gatewayId}, ${now}) ON CONFLICT (account_id, gateway_id) DO NOTHING`,
    );
  }

  /** Resolves when no data of the deleted gateway is left. Rejects when a step failed. `isOwn`: this call has deleted the gateway's row. */
  async finish(gateway: GatewayRef, isOwn = false): Promise<void> {
    const key = keyOf(gateway);
    let running = this.#running.get(key);
    if (running === undefined) {
      running = this.#finish(gateway, isOwn).finally(() => this.#running.delete(key));
      this.#running.set(key, running);
    }
    await running;
  }

  async #finish(gateway: GatewayRef, isOwn: boolean): Promise<void> {
    if (!isOwn && !(await this.#isPending(gateway))) return;
    // Another node may be at it. Two at once could delete what belongs to a new gateway of the name.
    if (!isOwn && this.#isShared && (await this.#waitForOther(gateway))) return;
    await this.#run(gateway);
  }

  async #isPending({ accountId, gatewayId }: GatewayRef): Promise<boolean> {
    const row = await this.#database.get(
      sql`SELECT deleted_at FROM gateway_deletion WHERE account_id = ${accountId} AND gateway_id = ${gatewayId}`,
    );
    return row !== undefined;
  }

  /** True if the deletion was finished by another node; after a time limit that node is considered stopped. */
  async #waitForOther(gateway: GatewayRef): Promise<boolean> {
    const deadline = performance.now() + MAX_WAIT_MS;
    while (performance.now() < deadline) {
      await sleep(POLL_MS);
      if (!(await this.#isPending(gateway))) return true;
    }
    return false;
  }

  /** Runs at the start. A deletion that fails again stops neither the others nor the service. */
  async finishAll(onError: (gateway: GatewayRef, error: unknown) => void): Promise<void> {
    const rows = await this.#database.all<{ account_id: string; gateway_id: string }>(
      sql`SELECT account_id, gateway_id FROM gateway_deletion`,
    );
    for (const row of rows) {
      const gateway = { accountId: row.account_id, gatewayId: row.gateway_id };
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
  }
}

function keyOf({ accountId, gatewayId }: GatewayRef): string {
  return `${accountId}/${gatewayId}`;
}

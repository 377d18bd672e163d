/** Writes, edits and deletes calls. Runs in the writer's thread; nothing else writes to the day files. */
import { mkdirSync } from "node:fs";
import { sql } from "../../core/sql.ts";
import { CallDeletions } from "./call-deletions.ts";
import type { CallPatch, CallQuota, GatewayRef } from "./call-log.ts";
import { findGatewayKey, transaction } from "./day-file.ts";
import { DAY_MS, type Day, dayOfId, listDays, startOfDay } from "./day-files.ts";
import { countDeltas, countStoredCalls, hasUncounted } from "./day-totals.ts";
import { DayWrite } from "./day-write.ts";
import { gatewayOf, GatewayRows, keyOf } from "./gateway-rows.ts";
import { MAX_DELTAS } from "./merge-totals.ts";
import { OpenDays } from "./open-days.ts";
import { packedRows } from "./packed-row.ts";
import type { RowBatch } from "./row-batch.ts";
import type { CallSelection } from "./selection.ts";
import { SizeLimit } from "./size-limit.ts";
import type { RemovedForSize } from "./worker-messages.ts";

export interface CallWriterOptions {
  readonly folder: string;
  readonly maxBodyBytes: number;
  /** Of all day files. */
  readonly maxTotalBytes: number;
  /** Keeps totals by token and metadata. Calls that were stored without them are counted by `trim`. Default true. */
  readonly usageTotals?: boolean;
}

export class CallWriter {
  readonly #folder: string;
  readonly #days: OpenDays;
  /** Equals the sum of the row counts in the files. */
  readonly #rows = new GatewayRows();
  readonly #size: SizeLimit;
  readonly #deletions: CallDeletions;
  readonly #quotas = new Map<string, CallQuota>();
  readonly #hasTotals: boolean;
  #isCounted = false;
  /** Every stored call is part of the totals, or totals are switched off. */
  #isRebuilt: boolean;

  constructor(options: CallWriterOptions) {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    this.#folder = options.folder;
    this.#hasTotals = options.usageTotals ?? true;
    this.#isRebuilt = !this.#hasTotals;
    this.#days = new OpenDays(options.folder, options.maxBodyBytes, this.#hasTotals);
    this.#size = new SizeLimit(this.#days, this.#rows, options.maxTotalBytes);
    this.#deletions = new CallDeletions(this.#days, this.#rows, this.#size);
  }

  /** Size of all day files; 0 before the first operation. */
  get bytes(): number {
    return this.#size.bytes;
  }

  get removed(): RemovedForSize {
    return this.#size.removed;
  }

  /** Days whose file has a later version. */
  get unreadableDays(): Day[] {
    return this.#days.listUnreadable();
  }

  /** One transaction per day. The batches are read once for each day that they contain, as a rule one. */
  write(batches: readonly RowBatch[]): void {
    this.#countOnce();
    const written = new Set<Day>();
    for (let day = this.#writeDay(batches, written); day !== null; day = this.#writeDay(batches, written)) {
      written.add(day);
    }
  }

  /**
   * Applies `deleteOldest` quotas and the size limit, and counts calls that were stored while totals were switched off. Does at most one chunk
   * per gateway and one of the whole log, so that the caller can write batches in between; true if more is left.
   */
  trim(): boolean {
    this.#countOnce();
    // Counted before they may be deleted.
    let isMoreLeft = this.#rebuildTotals();
    for (const day of this.#days.open) this.#days.mergeTotals(day, MAX_DELTAS);
    isMoreLeft = this.#size.trim() || isMoreLeft;
    for (const [key, quota] of this.#quotas) {
      if (quota.whenFull !== "deleteOldest") continue;
      this.#deletions.deleteOldest(gatewayOf(key), this.#rows.of(key) - quota.maxRows);
      isMoreLeft ||= this.#rows.of(key) > quota.maxRows;
    }
    return isMoreLeft;
  }

  setQuota(gateway: GatewayRef, quota: CallQuota | null): void {
    if (quota === null) this.#quotas.delete(keyOf(gateway));
    else this.#quotas.set(keyOf(gateway), quota);
  }

  edit(gateway: GatewayRef, id: string, patch: CallPatch): boolean {
    const day = dayOfId(id);
    if (!this.#days.has(day)) return false;
    const { connection } = this.#days.writable(day);
    const found = findGatewayKey(connection, gateway.accountId, gateway.gatewayId);
    if (found === undefined) return false;
    const target = sql`gateway = ${found.key} AND id = ${id}`;
    if (connection.get(sql`SELECT 1 FROM call WHERE ${target}`) === undefined) return false;
    transaction(connection, () => {
      const { feedback, score, metadata } = patch;
      if (feedback !== undefined) connection.run(sql`UPDATE call SET feedback = ${feedback} WHERE ${target}`);
      if (score !== undefined) connection.run(sql`UPDATE call SET score = ${score} WHERE ${target}`);
      if (metadata !== undefined) connection.run(sql`UPDATE call SET metadata = ${metadata} WHERE ${target}`);
    });
    return true;
  }

  async deleteMatching(gateway: GatewayRef, selection: CallSelection): Promise<number> {
    this.#countOnce();
    return this.#deletions.deleteMatching(gateway, selection);
  }

  async deleteIds(gateway: GatewayRef, ids: readonly string[]): Promise<number> {
    this.#countOnce();
    return this.#deletions.deleteIds(gateway, ids);
  }

  async dropGateway(gateway: GatewayRef): Promise<void> {
    this.#countOnce();
    await this.#deletions.deleteGateway(gateway);
    for (const day of this.#days.list()) {
      const { connection, gatewayKeys } = this.#days.get(day);
      const found = findGatewayKey(connection, gateway.accountId, gateway.gatewayId);
      if (found === undefined) continue;
      transaction(connection, () => {
        connection.run(sql`DELETE FROM hourly WHERE gateway = ${found.key}`);
        connection.run(sql`DELETE FROM totals WHERE gateway = ${found.key}`);
        connection.run(sql`DELETE FROM totals_delta WHERE gateway = ${found.key}`);
        connection.run(sql`DELETE FROM gateway WHERE key = ${found.key} AND rows = 0`);
      });
      gatewayKeys.clear();
      this.#size.measure(day);
    }
    this.#quotas.delete(keyOf(gateway));
  }

  /** Removes the files of days that ended more than `maxAgeDays` before `now`, whatever their version. */
  expire(now: number, maxAgeDays: number): void {
    this.#countOnce();
    const readable = new Set(this.#days.list());
    for (const day of listDays(this.#folder)) {
      if (startOfDay(day) + DAY_MS > now - maxAgeDays * DAY_MS) continue;
      if (readable.has(day)) this.#rows.addDay(this.#days.get(day).connection, -1);
      this.#days.remove(day);
      this.#size.removedDay(day);
    }
  }

  close(): void {
    this.#days.close();
  }

  /** Writes the calls of the first day that is not among the written ones; null if there is none. */
  #writeDay(batches: readonly RowBatch[], written: ReadonlySet<Day>): Day | null {
    let day: Day | null = null;
    let write: DayWrite | null = null;
    try {
      for (const call of packedRows(batches)) {
        const dayOfCall = dayOfId(call.id);
        if (write === null) {
          if (written.has(dayOfCall)) continue;
          day = dayOfCall;
          write = new DayWrite(this.#days.writable(day), this.#rows, this.#quotas, this.#hasTotals);
        }
        if (dayOfCall === day) write.add(call);
      }
      write?.commit();
    } catch (error) {
      write?.rollback();
      throw error;
    }
    if (day !== null) this.#size.added(day);
    return day;
  }

  /** Counts one chunk of one day; true if more may be left. */
  #rebuildTotals(): boolean {
    if (this.#isRebuilt) return false;
    for (const day of this.#days.list().toReversed()) {
      if (!hasUncounted(this.#days.get(day).connection)) continue;
      const open = this.#days.writable(day);
      transaction(open.connection, () => countStoredCalls(open.connection));
      open.deltas = countDeltas(open.connection);
      return true;
    }
    this.#isRebuilt = true;
    return false;
  }

  /** Runs with the first operation, not when the thread starts: a file that cannot be opened then delays rows, as it does at any other time. */
  #countOnce(): void {
    if (this.#isCounted) return;
    this.#rows.clear();
    this.#size.clear();
    for (const day of this.#days.list()) {
      this.#rows.addDay(this.#days.get(day).connection, 1);
      this.#size.measure(day);
    }
    this.#isCounted = true;
  }
}

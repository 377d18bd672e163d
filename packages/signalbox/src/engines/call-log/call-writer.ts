/**
 * Writes calls, changes and deletes them. Runs in the writer's thread and is the only one that writes to the day files.
 *
 * Invariants:
 * 1. A batch's rows and the usage figures that count them are one transaction per day file.
 * 2. Writing a batch again (after a crash between commit and acknowledgement) changes nothing: ids are unique, and only rows that
 *    were new are counted.
 * 3. `#rows` equals the sum of the files' row counters, and `#size` knows their pages: quotas and the size limit hold over all days
 *    without a scan.
 */
import { mkdirSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import type { CallPatch, CallQuota, CallRecord, CallSelection, GatewayRef } from "./call-log.ts";
import { sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import { DAY_MS, type Day, dayOfId, startOfDay } from "./day-files.ts";
import { findGatewayKey } from "./day-schema.ts";
import { gatewayOf, GatewayRows, keyOf } from "./gateway-rows.ts";
import { HourlyFigures } from "./hourly-usage.ts";
import { begin, commit, type OpenDay, OpenDays, transaction } from "./open-days.ts";
import { whereSql } from "./selection-sql.ts";
import { type RemovedForSize, SizeLimit } from "./size-limit.ts";
import { storableCall } from "./storable-call.ts";

/** Rows deleted in one transaction: some ten milliseconds, after which waiting batches get their turn. */
const DELETE_CHUNK = 2000;

/** A transaction that is being filled. */
interface DayWriting {
  readonly day: OpenDay;
  readonly firstSeq: number;
  readonly figures: HourlyFigures;
  readonly gateways: Map<string, GatewayWriting>;
  last: GatewayWriting | null;
}

interface GatewayWriting {
  readonly key: number;
  readonly gateway: GatewayRef;
  readonly quota: CallQuota | undefined;
  /** Of all days, before this transaction. */
  readonly rowsBefore: number;
  rows: number;
}

export interface CallWriterOptions {
  readonly folder: string;
  readonly maxBodyBytes: number;
  /** Of all day files. */
  readonly maxTotalBytes: number;
}

export class CallWriter {
  readonly #days: OpenDays;
  readonly #rows = new GatewayRows();
  readonly #size: SizeLimit;
  readonly #quotas = new Map<string, CallQuota>();
  #isCounted = false;

  constructor(options: CallWriterOptions) {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    this.#days = new OpenDays(options.folder, options.maxBodyBytes);
    this.#size = new SizeLimit(this.#days, this.#rows, options.maxTotalBytes);
  }

  /** Of all day files; 0 before the first work. */
  get bytes(): number {
    return this.#size.bytes;
  }

  get removed(): RemovedForSize {
    return this.#size.removed;
  }

  /** `calls` is gone through once for each day that it holds. */
  write(calls: Iterable<CallRecord>): void {
    this.#countOnce();
    const written = new Set<Day>();
    for (let day = this.#writeDay(calls, written); day !== null; day = this.#writeDay(calls, written)) {
      written.add(day);
    }
  }

  /**
   * Applies deleting quotas and the size limit: at most one chunk per gateway and one of the whole log, so that the caller can let batches
   * in between; true when more is left.
   */
  trim(): boolean {
    this.#countOnce();
    let isMoreLeft = this.#size.trim();
    for (const [key, quota] of this.#quotas) {
      if (quota.whenFull !== "deleteOldest") continue;
      const gateway = gatewayOf(key);
      let excess = Math.min(this.#rows.of(key) - quota.maxRows, DELETE_CHUNK);
      for (const day of excess > 0 ? this.#days.list() : []) {
        if (excess <= 0) break;
        excess -= this.#deleteSome(day, gateway, (gatewayKey) => sql`gateway = ${gatewayKey}`, excess);
      }
      isMoreLeft ||= this.#rows.of(key) > quota.maxRows;
    }
    return isMoreLeft;
  }

  setQuota(gateway: GatewayRef, quota: CallQuota | null): void {
    if (quota === null) this.#quotas.delete(keyOf(gateway));
    else this.#quotas.set(keyOf(gateway), quota);
  }

  edit(gateway: GatewayRef, id: string, patch: CallPatch): boolean {
    const day = this.#days.existing(dayOfId(id));
    const found = day && findGatewayKey(day.connection, gateway.accountId, gateway.gatewayId);
    if (day === undefined || found === undefined) return false;
    const { connection } = day;
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

  /** Deletes what matches, oldest day first. */
  async deleteMatching(gateway: GatewayRef, selection: CallSelection): Promise<number> {
    return this.#deleteEverywhere(gateway, (key) => whereSql(key, selection));
  }

  async deleteIds(gateway: GatewayRef, ids: readonly string[]): Promise<number> {
    let deleted = 0;
    for (let start = 0; start < ids.length; start += DELETE_CHUNK) {
      const byDay = Map.groupBy(ids.slice(start, start + DELETE_CHUNK), dayOfId);
      for (const [day, some] of byDay) {
        deleted += this.#deleteSome(
          day,
          gateway,
          (key) => sql`gateway = ${key} AND id IN (${sqlList(some)})`,
          some.length,
        );
      }
      await setImmediate();
    }
    return deleted;
  }

  async dropGateway(gateway: GatewayRef): Promise<void> {
    await this.#deleteEverywhere(gateway, (key) => sql`gateway = ${key}`);
    for (const day of this.#days.list()) {
      const { connection, gatewayKeys } = this.#days.get(day);
      const found = findGatewayKey(connection, gateway.accountId, gateway.gatewayId);
      if (found === undefined) continue;
      transaction(connection, () => {
        connection.run(sql`DELETE FROM hourly WHERE gateway = ${found.key}`);
        connection.run(sql`DELETE FROM gateway WHERE key = ${found.key} AND rows = 0`);
      });
      gatewayKeys.clear();
      this.#size.measure(day);
    }
    this.#quotas.delete(keyOf(gateway));
  }

  /** Removes the days that ended more than `maxAgeDays` before `now`. */
  expire(now: number, maxAgeDays: number): Day[] {
    this.#countOnce();
    const expired = this.#days.list().filter((day) => startOfDay(day) + DAY_MS <= now - maxAgeDays * DAY_MS);
    for (const day of expired) {
      this.#rows.addDay(this.#days.get(day).connection, -1);
      this.#days.remove(day);
      this.#size.removedDay(day);
    }
    return expired;
  }

  close(): void {
    this.#days.close();
  }

  /** Writes the calls of the first day that is not among the written ones; null when there is none. */
  #writeDay(calls: Iterable<CallRecord>, written: ReadonlySet<Day>): Day | null {
    let name: Day | null = null;
    let writing: DayWriting | null = null;
    try {
      for (const call of calls) {
        const day = dayOfId(call.id);
        if (writing === null) {
          if (written.has(day)) continue;
          name = day;
          writing = this.#begin(this.#days.get(day));
        }
        if (day === name) this.#writeCall(writing, call);
      }
      if (writing === null) return null;
      const { connection } = writing.day;
      for (const { key, rows } of writing.gateways.values()) {
        if (rows > 0) connection.run(sql`UPDATE gateway SET rows = rows + ${rows} WHERE key = ${key}`);
      }
      for (const upsert of writing.figures.upserts()) connection.run(upsert);
      commit(connection);
    } catch (error) {
      if (writing !== null) this.#undo(writing);
      throw error;
    }
    for (const { gateway, rows } of writing.gateways.values()) this.#rows.add(gateway, rows);
    if (name !== null) this.#size.added(name);
    return name;
  }

  #begin(day: OpenDay): DayWriting {
    begin(day.connection);
    return {
      day,
      firstSeq: day.nextSeq,
      figures: new HourlyFigures(),
      gateways: new Map(),
      last: null,
    };
  }

  #undo({ day, firstSeq }: DayWriting): void {
    day.connection.rollback();
    // What was rolled back includes gateways that were new to the file.
    day.gatewayKeys.clear();
    day.nextSeq = firstSeq;
  }

  #writeCall(writing: DayWriting, call: CallRecord): void {
    const gateway = this.#gatewayOf(writing, call);
    const storable = storableCall(call);
    const isFull =
      gateway.quota?.whenFull === "stop" && gateway.rowsBefore + gateway.rows >= gateway.quota.maxRows;
    if (!isFull) {
      const { day } = writing;
      if (!day.inserts.insert(day.nextSeq, gateway.key, storable)) return;
      day.nextSeq += 1;
      gateway.rows += 1;
    }
    writing.figures.add(storable, gateway.key);
  }

  #gatewayOf(writing: DayWriting, call: CallRecord): GatewayWriting {
    const { last } = writing;
    // Calls mostly come in runs of one gateway.
    if (last?.gateway.accountId === call.accountId && last.gateway.gatewayId === call.gatewayId) return last;
    const name = keyOf(call);
    let gateway = writing.gateways.get(name);
    if (gateway === undefined) {
      gateway = {
        key: this.#gatewayKey(writing.day, call),
        gateway: { accountId: call.accountId, gatewayId: call.gatewayId },
        quota: this.#quotas.get(name),
        rowsBefore: this.#rows.of(name),
        rows: 0,
      };
      writing.gateways.set(name, gateway);
    }
    writing.last = gateway;
    return gateway;
  }

  async #deleteEverywhere(gateway: GatewayRef, where: (gatewayKey: number) => SqlQuery): Promise<number> {
    let deleted = 0;
    for (const day of this.#days.list()) {
      for (;;) {
        const some = this.#deleteSome(day, gateway, where, DELETE_CHUNK);
        deleted += some;
        await setImmediate();
        if (some < DELETE_CHUNK) break;
      }
    }
    return deleted;
  }

  /** Deletes up to `limit` rows of a day, oldest first, with their bodies; returns how many. */
  #deleteSome(
    dayName: Day,
    gateway: GatewayRef,
    where: (gatewayKey: number) => SqlQuery,
    limit: number,
  ): number {
    this.#countOnce();
    const connection = this.#days.existing(dayName)?.connection;
    const found = connection && findGatewayKey(connection, gateway.accountId, gateway.gatewayId);
    if (connection === undefined || found === undefined) return 0;
    const seqs = connection
      .all<{ seq: number }>(sql`SELECT seq FROM call WHERE ${where(found.key)} ORDER BY id LIMIT ${limit}`)
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
    this.#size.measure(dayName);
    return seqs.length;
  }

  #gatewayKey(day: OpenDay, gateway: GatewayRef): number {
    const name = keyOf(gateway);
    let key = day.gatewayKeys.get(name);
    if (key === undefined) {
      const { accountId, gatewayId } = gateway;
      day.connection.run(
        sql`INSERT INTO gateway (account_id, gateway_id) VALUES (${accountId}, ${gatewayId}) ON CONFLICT DO NOTHING`,
      );
      key = findGatewayKey(day.connection, accountId, gatewayId)?.key ?? 0;
      day.gatewayKeys.set(name, key);
    }
    return key;
  }

  /** Not when the thread starts: a day that cannot be opened then delays its rows, as at any other time. */
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

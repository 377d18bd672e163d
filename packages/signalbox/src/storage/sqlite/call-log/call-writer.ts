/**
 * Writes calls, changes and deletes them. Runs in the writer's thread and is the only one that writes to the day files.
 *
 * Invariants:
 * 1. A batch's rows and the usage figures that count them are one transaction per day file.
 * 2. Writing a batch again (after a crash between commit and acknowledgement) changes nothing: ids are unique, and only rows that
 *    were new are counted.
 * 3. `#rows` equals the sum of the files' row counters, so quotas hold over all days without a scan.
 */
import { mkdirSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import type { CallPatch, CallQuota, CallRecord, CallSelection, GatewayRef } from "../../ports/call-log.ts";
import { rawSql, sql, type SqlQuery, sqlList } from "../../ports/sql.ts";
import type { SqliteConnection } from "../connection.ts";
import { syncFolder } from "../sync-folder.ts";
import { CallInserts } from "./call-inserts.ts";
import { DAY_MS, type Day, dayOfId, dayPath, listDays, removeDay, startOfDay } from "./day-files.ts";
import { findGatewayKey, openDayForWriting } from "./day-schema.ts";
import { HourlyFigures } from "./hourly-figures.ts";
import { whereSql } from "./selection-sql.ts";
import { storableCall } from "./storable-call.ts";

/** Today, yesterday around midnight, and one that is being changed. */
const MAX_OPEN_DAYS = 3;
/** Rows deleted in one transaction: some ten milliseconds, after which waiting batches get their turn. */
const DELETE_CHUNK = 2000;
const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

interface OpenDay {
  readonly connection: SqliteConnection;
  readonly inserts: CallInserts;
  readonly gatewayKeys: Map<string, number>;
  nextSeq: number;
}

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
}

export class CallWriter {
  readonly #folder: string;
  readonly #maxBodyBytes: number;
  /** Most recently used last. */
  readonly #days = new Map<Day, OpenDay>();
  readonly #rows = new Map<string, number>();
  readonly #quotas = new Map<string, CallQuota>();
  #isCounted = false;

  constructor(options: CallWriterOptions) {
    this.#folder = options.folder;
    this.#maxBodyBytes = options.maxBodyBytes;
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  }

  /** `calls` is gone through once for each day that it holds. */
  write(calls: Iterable<CallRecord>): void {
    this.#countOnce();
    const written = new Set<Day>();
    for (let day = this.#writeDay(calls, written); day !== null; day = this.#writeDay(calls, written)) {
      written.add(day);
    }
  }

  /** Applies deleting quotas: at most one chunk per gateway, so that the caller can let batches in between; true when more is left. */
  trim(): boolean {
    this.#countOnce();
    let isMoreLeft = false;
    for (const [key, quota] of this.#quotas) {
      if (quota.whenFull !== "deleteOldest") continue;
      const gateway = gatewayOf(key);
      let excess = Math.min((this.#rows.get(key) ?? 0) - quota.maxRows, DELETE_CHUNK);
      for (const day of excess > 0 ? listDays(this.#folder) : []) {
        if (excess <= 0) break;
        excess -= this.#deleteSome(day, gateway, (gatewayKey) => sql`gateway = ${gatewayKey}`, excess);
      }
      isMoreLeft ||= (this.#rows.get(key) ?? 0) > quota.maxRows;
    }
    return isMoreLeft;
  }

  setQuota(gateway: GatewayRef, quota: CallQuota | null): void {
    if (quota === null) this.#quotas.delete(keyOf(gateway));
    else this.#quotas.set(keyOf(gateway), quota);
  }

  edit(gateway: GatewayRef, id: string, patch: CallPatch): boolean {
    const day = this.#existingDay(dayOfId(id));
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
    for (const day of listDays(this.#folder)) {
      const { connection, gatewayKeys } = this.#day(day);
      const found = findGatewayKey(connection, gateway.accountId, gateway.gatewayId);
      if (found === undefined) continue;
      transaction(connection, () => {
        connection.run(sql`DELETE FROM hourly WHERE gateway = ${found.key}`);
        connection.run(sql`DELETE FROM gateway WHERE key = ${found.key} AND rows = 0`);
      });
      gatewayKeys.clear();
    }
    this.#quotas.delete(keyOf(gateway));
  }

  /** Removes the days that ended more than `maxAgeDays` before `now`. */
  expire(now: number, maxAgeDays: number): Day[] {
    this.#countOnce();
    const expired = listDays(this.#folder).filter(
      (day) => startOfDay(day) + DAY_MS <= now - maxAgeDays * DAY_MS,
    );
    for (const day of expired) {
      this.#countDay(day, -1);
      this.#closeDay(day);
      removeDay(this.#folder, day);
    }
    return expired;
  }

  close(): void {
    for (const day of this.#days.keys()) this.#closeDay(day);
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
          writing = this.#begin(this.#day(day));
        }
        if (day === name) this.#writeCall(writing, call);
      }
      if (writing === null) return null;
      const { connection } = writing.day;
      for (const { key, rows } of writing.gateways.values()) {
        if (rows > 0) connection.run(sql`UPDATE gateway SET rows = rows + ${rows} WHERE key = ${key}`);
      }
      for (const upsert of writing.figures.upserts()) connection.run(upsert);
      connection.run(COMMIT);
    } catch (error) {
      if (writing !== null) this.#undo(writing);
      throw error;
    }
    for (const { gateway, rows } of writing.gateways.values()) this.#countRows(gateway, rows);
    return name;
  }

  #begin(day: OpenDay): DayWriting {
    day.connection.run(BEGIN);
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
        rowsBefore: this.#rows.get(name) ?? 0,
        rows: 0,
      };
      writing.gateways.set(name, gateway);
    }
    writing.last = gateway;
    return gateway;
  }

  async #deleteEverywhere(gateway: GatewayRef, where: (gatewayKey: number) => SqlQuery): Promise<number> {
    let deleted = 0;
    for (const day of listDays(this.#folder)) {
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
    const connection = this.#existingDay(dayName)?.connection;
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
    this.#countRows(gateway, -seqs.length);
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
    for (const day of listDays(this.#folder)) this.#countDay(day, 1);
    this.#isCounted = true;
  }

  #countDay(day: Day, sign: 1 | -1): void {
    const { connection } = this.#day(day);
    for (const row of connection.all<{ account_id: string; gateway_id: string; rows: number }>(
      sql`SELECT account_id, gateway_id, rows FROM gateway`,
    )) {
      this.#countRows({ accountId: row.account_id, gatewayId: row.gateway_id }, sign * row.rows);
    }
  }

  #countRows(gateway: GatewayRef, change: number): void {
    const key = keyOf(gateway);
    const rows = (this.#rows.get(key) ?? 0) + change;
    if (rows === 0) this.#rows.delete(key);
    else this.#rows.set(key, rows);
  }

  #existingDay(day: Day): OpenDay | undefined {
    return this.#days.has(day) || listDays(this.#folder).includes(day) ? this.#day(day) : undefined;
  }

  #day(day: Day): OpenDay {
    const open = this.#days.get(day) ?? this.#openDay(day);
    this.#days.delete(day);
    this.#days.set(day, open);
    return open;
  }

  #openDay(day: Day): OpenDay {
    const [oldest] = this.#days.keys();
    if (this.#days.size >= MAX_OPEN_DAYS && oldest !== undefined) this.#closeDay(oldest);
    const connection = openDayForWriting(dayPath(this.#folder, day));
    syncFolder(this.#folder);
    const last = connection.get<{ seq: number | null }>(sql`SELECT max(seq) AS seq FROM call`)?.seq ?? 0;
    return {
      connection,
      inserts: new CallInserts(connection, this.#maxBodyBytes),
      gatewayKeys: new Map(),
      nextSeq: last + 1,
    };
  }

  #closeDay(day: Day): void {
    const connection = this.#days.get(day)?.connection;
    this.#days.delete(day);
    if (connection === undefined) return;
    // A closed day is one file; busy readers only delay that.
    connection.get(rawSql("PRAGMA wal_checkpoint(TRUNCATE)"));
    connection.close();
  }
}

/** Told the size, zstd takes tables that fit it, and Node a piece of memory that does: the defaults take many times that for a small body. */
function transaction(connection: SqliteConnection, work: () => void): void {
  connection.run(BEGIN);
  try {
    work();
    connection.run(COMMIT);
  } catch (error) {
    connection.rollback();
    throw error;
  }
}

/** Ids of accounts and gateways have no line feeds. */
function keyOf(gateway: GatewayRef): string {
  return `${gateway.accountId}\n${gateway.gatewayId}`;
}

function gatewayOf(key: string): GatewayRef {
  const [accountId = "", gatewayId = ""] = key.split("\n");
  return { accountId, gatewayId };
}

/**
 * Copies stored calls to S3-compatible storage, every hour by default.
 *
 * Invariants:
 * 1. At least once: the position moves only after the objects and their manifest are stored. A crash in between repeats them.
 * 2. An object is named after the positions at which it begins and ends, so the same name means the same calls: a process that was slow never
 *    replaces an object with an earlier state of it.
 * 3. A call that is stored late is not lost: the position is that of the log, not a time.
 * 4. One run at a time, on all nodes together: a node takes the row of the target for some minutes before it copies a part. A failure is reported and retried; calls wait in the log as long as the log keeps them.
 * See engines/call-log/README.md.
 */
import { createHash, randomUUID } from "node:crypto";
import { promisify } from "node:util";
import { zstdCompress } from "node:zlib";
import type { Clock } from "../../core/clock.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import type { CallLog, ScannedCall } from "../../engines/call-log/index.ts";
import { callNdjson } from "../log-api/export-lines.ts";
import type { S3Object } from "./s3-bucket.ts";

const compress = promisify(zstdCompress);

/** Calls of one part: an object per account. */
const PART_CALLS = 5000;
const PART_BYTES = 32 * 1024 * 1024;
/** Calls of one read of the log. */
const READ_CALLS = 500;
/** No other node begins before this has passed since the last part began. Several uploads may take their whole time. */
const HOLD_MS = 10 * 60_000;
/** A failed run is repeated after this time. */
const RETRY_MS = 60_000;

export interface LogPushOptions {
  /** Identifies the target: a changed bucket begins anew. */
  readonly name: string;
  readonly prefix: string;
  readonly intervalMs: number;
  readonly withBodies: boolean;
  /** Null: all accounts. */
  readonly accounts: readonly string[] | null;
}

export interface LogPushParts {
  readonly options: LogPushOptions;
  readonly bucket: { put(object: S3Object, signal: AbortSignal): Promise<void> };
  readonly callLog: Pick<CallLog, "storedAfter">;
  readonly database: Database;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

export interface LogPushState {
  readonly pushedAt: number | null;
  /** Calls since the beginning. */
  readonly calls: number;
  readonly lastError: string | null;
}

interface PushRow {
  readonly position: string;
  readonly pushed_at: number;
  readonly calls: number;
}

interface StoredObject {
  readonly key: string;
  readonly account_id: string;
  readonly calls: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly first_id: string;
  readonly last_id: string;
}

export class LogPush {
  readonly #parts: LogPushParts;
  readonly #stopping = new AbortController();
  readonly #holder = randomUUID();
  #repetition: Repetition | undefined;
  #running: Promise<number> | null = null;
  #lastError: string | null = null;
  #dueAt = 0;

  constructor(parts: LogPushParts) {
    this.#parts = parts;
  }

  /** Calls that were stored before the first start are not copied. */
  async start(): Promise<void> {
    const { options, clock, onError, database } = this.#parts;
    await this.#begin();
    // SQLite has one process, so a hold was left by a process that was killed.
    if (database.engine === "sqlite") {
      await database.run(sql`UPDATE log_push SET held_until = 0 WHERE name = ${options.name}`);
    }
    this.#dueAt = nextRun(clock.now(), options.intervalMs);
    this.#repetition = repeat(Math.min(RETRY_MS, options.intervalMs), () => this.#runWhenDue(), onError);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#repetition?.stop();
    // The run that was asked for reports its failure; the calls are copied after the next start.
    await this.#running?.catch(() => undefined);
  }

  /** Copies what has been stored since the last run; resolves to the number of calls. */
  run(): Promise<number> {
    this.#running ??= this.#copy().finally(() => (this.#running = null));
    return this.#running;
  }

  async state(): Promise<LogPushState> {
    const row = await this.#read();
    return { pushedAt: row?.pushed_at ?? null, calls: row?.calls ?? 0, lastError: this.#lastError };
  }

  async #runWhenDue(): Promise<void> {
    const { clock, options } = this.#parts;
    if (clock.now() < this.#dueAt) return;
    await this.run();
    this.#dueAt = nextRun(clock.now(), options.intervalMs);
  }

  async #copy(): Promise<number> {
    try {
      let total = 0;
      for (;;) {
        const { calls, isEnd } = await this.#copyPart();
        total += calls;
        if (isEnd || this.#stopping.signal.aborted) break;
      }
      await this.#release();
      this.#lastError = null;
      return total;
    } catch (error) {
      this.#lastError = error instanceof Error ? error.message : String(error);
      // The error of the copy is the one to report; without a release the hold ends by itself.
      await this.#release().catch(() => undefined);
      throw error;
    }
  }

  /** One part: objects, then their manifest, then the position. */
  async #copyPart(): Promise<{ calls: number; isEnd: boolean }> {
    const { callLog, bucket, clock, options } = this.#parts;
    const { signal } = this.#stopping;
    const { position: from, pushed_at: since } = await this.#begin();
    if (!(await this.#hold(from))) return { calls: 0, isEnd: true };
    const lines = new AccountLines(options);
    let position = from;
    let isEnd = false;
    while (!isEnd && !lines.isFull) {
      const stored = await callLog.storedAfter(position, READ_CALLS);
      for (const call of stored.calls) lines.add(call);
      ({ position, isEnd } = stored);
    }
    if (lines.calls > 0) {
      const name = createHash("sha256")
        .update(`${options.name}\n${from}\n${position}`)
        .digest("hex")
        .slice(0, 16);
      // The hour in which the part begins, so that a repetition has the same name.
      const folder = hourFolder(since);
      const objects: StoredObject[] = [];
      for (const account of lines.accounts()) {
        const body = await compress(Buffer.from(account.text));
        const key = `${options.prefix}/${account.id}/${folder}/${name}.ndjson.zst`;
        await bucket.put({ key, body, contentType: "application/zstd" }, signal);
        objects.push({
          key,
          account_id: account.id,
          calls: account.calls,
          bytes: body.length,
          sha256: createHash("sha256").update(body).digest("hex"),
          first_id: account.firstId,
          last_id: account.lastId,
        });
      }
      const manifest = { version: 1, created_at: new Date(clock.now()).toISOString(), objects };
      const key = `${options.prefix}/manifests/${folder}/${name}.json`;
      await bucket.put(
        { key, body: Buffer.from(JSON.stringify(manifest)), contentType: "application/json" },
        signal,
      );
    }
    if (position !== from) await this.#save(from, position, lines.calls);
    return { calls: lines.calls, isEnd };
  }

  /** The position that was reached, and when; at the first start, the end of the log. */
  async #begin(): Promise<PushRow> {
    const known = await this.#read();
    if (known !== undefined) return known;
    const { database, callLog, clock, options } = this.#parts;
    const { position } = await callLog.storedAfter(null, 1);
    await database.run(
      sql`INSERT INTO log_push (name, position, pushed_at, calls) VALUES (${options.name}, ${position}, ${clock.now()}, 0)
          ON CONFLICT (name) DO NOTHING`,
    );
    return (await this.#read()) ?? { position, pushed_at: clock.now(), calls: 0 };
  }

  #read(): Promise<PushRow | undefined> {
    return this.#parts.database.get(
      sql`SELECT position, pushed_at, calls FROM log_push WHERE name = ${this.#parts.options.name}`,
    );
  }

  /** Returns false if another node copies now, or has copied since the position was read. */
  async #hold(from: string): Promise<boolean> {
    const { database, clock, options } = this.#parts;
    const now = clock.now();
    const { changes } = await database.run(
      sql`UPDATE log_push SET holder = ${this.#holder}, held_until = ${now + HOLD_MS}
          WHERE name = ${options.name} AND position = ${from} AND (holder = ${this.#holder} OR held_until < ${now})`,
    );
    return changes > 0;
  }

  async #release(): Promise<void> {
    const { database, options } = this.#parts;
    await database.run(
      sql`UPDATE log_push SET held_until = 0 WHERE name = ${options.name} AND holder = ${this.#holder}`,
    );
  }

  /** Another node may have copied the same calls after a hold that ended; then its position stays. */
  async #save(from: string, position: string, calls: number): Promise<void> {
    const { database, clock, options } = this.#parts;
    await database.run(
      sql`UPDATE log_push SET position = ${position}, pushed_at = ${clock.now()}, calls = calls + ${calls}
          WHERE name = ${options.name} AND position = ${from}`,
    );
  }
}

interface OneAccount {
  readonly id: string;
  text: string;
  calls: number;
  readonly firstId: string;
  lastId: string;
}

/** Lines by account: an object contains calls of one account only. */
class AccountLines {
  readonly #options: LogPushOptions;
  readonly #accounts = new Map<string, OneAccount>();
  calls = 0;
  #bytes = 0;

  constructor(options: LogPushOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.calls >= PART_CALLS || this.#bytes >= PART_BYTES;
  }

  add(call: ScannedCall): void {
    const { accounts, withBodies } = this.#options;
    const { accountId, id } = call.row;
    if (accounts !== null && !accounts.includes(accountId)) return;
    const line = callNdjson(call, withBodies);
    const known = this.#accounts.get(accountId);
    if (known === undefined) {
      this.#accounts.set(accountId, { id: accountId, text: line, calls: 1, firstId: id, lastId: id });
    } else {
      known.text += line;
      known.calls += 1;
      known.lastId = id;
    }
    this.calls += 1;
    this.#bytes += line.length;
  }

  accounts(): readonly OneAccount[] {
    return [...this.#accounts.values()];
  }
}

/** Runs at full intervals: every hour on the hour. */
function nextRun(now: number, intervalMs: number): number {
  return Math.floor(now / intervalMs) * intervalMs + intervalMs;
}

/** `2026/11/16/09` */
function hourFolder(time: number): string {
  return new Date(time).toISOString().slice(0, 13).replaceAll(/[-T]/g, "/");
}

/**
 * The durable queue of one instance: first in, first out, at least once.
 *
 *   ready → running → done (the row is deleted in the transaction of the handler's last segment)
 *                   → waiting for its next attempt (later items run in the meantime)
 *                   → dead letter
 *
 * Invariants:
 * 1. An attempt is counted and committed before it runs, so that an item that ends the process runs out of attempts too.
 * 2. The row is deleted in the same transaction as what the handler wrote since its last await.
 * 3. An item with the id of a waiting item replaces that item and keeps its place.
 * 4. Every run changes the row that it read, or fails: in a damaged database an item that cannot be changed must not run for ever.
 * 5. An item that has not failed is ready whatever the clock shows (`AT_ONCE`): a clock that is set back delays retries only.
 */
import type { Clock } from "../../core/clock.ts";
import { ulid } from "../../core/ulid.ts";
import { sql, type SqlQuery } from "../../core/sql.ts";
import { messageOf, storedErrorText, toStoredError } from "../../core/stored-error.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { requireChange, requireNumber } from "./damaged-work.ts";
import { fromStoredPayload, toStoredPayload } from "./payload.ts";
import { adviseRetry, QUEUED_WEBHOOK } from "./queued-webhook.ts";
import {
  fromStoredRetry,
  nextAttempt,
  retryDelay,
  type RetryOptions,
  type RetryPlan,
  toStoredRetry,
} from "./retry-options.ts";
import { AT_ONCE, type WorkTables } from "./work-tables.ts";

export interface QueueItem<Payload = unknown> {
  readonly id: string;
  /** The method that handles the item. */
  readonly callback: string;
  readonly payload: Payload;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Attempts started so far. */
  readonly attempts: number;
  /** When the next attempt may begin, milliseconds since the epoch. */
  readonly nextAttemptAt: number;
  readonly lastError: string | null;
}

export interface QueueOptions {
  readonly retry?: RetryOptions;
  /** Id of the item; a new item with the id of a waiting one replaces it. Default: a new id. */
  readonly id?: string;
}

interface QueueRow {
  readonly seq: number;
  readonly id: string;
  readonly callback: string;
  readonly payload: string | null;
  readonly retry: string | null;
  readonly attempts: number;
  readonly next_at: number;
  readonly created_at: number;
  readonly last_error: string | null;
}

/** An item during an attempt. */
export interface QueueAttempt {
  readonly item: QueueItem;
  /** The item is done. Called in the handler's last segment. */
  complete(): void;
  /** Schedules the next attempt, or moves the item to the dead letters and returns true. Called in a transaction of its own. */
  fail(error: unknown): boolean;
}

interface ReadyItem {
  readonly row: QueueRow;
  readonly policy: ReturnType<typeof fromStoredRetry>;
  /** Attempts with the one that begins. */
  readonly attempts: number;
}

const MAX_ID_LENGTH = 256;
/** A longer queue is counted as this long: counting takes time, and every few seconds. */
const MAX_COUNTED = 10_000;
/** Items whose errors are looked at. */
const MAX_LOOKED_AT = 1000;
/** Before the first position. An item that was moved to the front has a position below 1. */
const BEGINNING = Number.MIN_SAFE_INTEGER;

export class WorkQueue {
  readonly #tables: WorkTables;
  readonly #deadLetters: DeadLetters;
  readonly #clock: Clock;
  readonly #onChange: () => void;

  constructor(tables: WorkTables, deadLetters: DeadLetters, clock: Clock, onChange: () => void) {
    this.#tables = tables;
    this.#deadLetters = deadLetters;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  add(
    callback: string,
    payload: unknown,
    options: Omit<QueueOptions, "retry"> & { readonly retry?: RetryPlan } = {},
  ): string {
    const now = this.#clock.now();
    const id = options.id ?? ulid(now);
    if (id === "" || id.length > MAX_ID_LENGTH) throw new RangeError("a queue id has 1 to 256 characters");
    const retry = toStoredRetry(options.retry);
    const stored = toStoredPayload(payload);
    this.#tables.insert(
      sql`INSERT INTO _signalbox_queue (id, callback, payload, retry, next_at, created_at)
          VALUES (${id}, ${callback}, ${stored}, ${retry}, ${AT_ONCE}, ${now})
          ON CONFLICT (id) DO UPDATE SET callback = excluded.callback, payload = excluded.payload, retry = excluded.retry,
            attempts = 0, next_at = excluded.next_at, last_error = NULL`,
    );
    this.#onChange();
    return id;
  }

  remove(id: string): boolean {
    return this.#delete(sql`DELETE FROM _signalbox_queue WHERE id = ${id}`) > 0;
  }

  removeAll(): number {
    return this.#delete(sql`DELETE FROM _signalbox_queue`);
  }

  removeByCallback(callback: string): number {
    return this.#delete(sql`DELETE FROM _signalbox_queue WHERE callback = ${callback}`);
  }

  #delete(query: SqlQuery): number {
    const { changes } = this.#tables.change(query);
    if (changes > 0) this.#onChange();
    return changes;
  }

  /** Makes the item the first one, and ready. Returns false if there is none. The caller has checked that no attempt of it runs. */
  moveToFront(id: string): boolean {
    const { changes } = this.#tables.change(
      sql`UPDATE _signalbox_queue SET next_at = ${this.#clock.now()}, seq = (SELECT min(seq) - 1 FROM _signalbox_queue)
          WHERE id = ${id}`,
    );
    if (changes > 0) this.#onChange();
    return changes > 0;
  }

  /** For lists of instances: bounded, however long the queue is. Items that fail are among the first ones. */
  figures(): { readonly queued: number; readonly retrying: number } {
    const queued = this.#tables.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM (SELECT 1 FROM _signalbox_queue LIMIT ${MAX_COUNTED})`,
    );
    // The queue of most instances is empty: one statement to compile in place of two.
    if (queued === undefined || queued.n === 0) return { queued: 0, retrying: 0 };
    const retrying = this.#tables.get<{ n: number }>(
      sql`SELECT count(last_error) AS n FROM
            (SELECT last_error FROM _signalbox_queue ORDER BY seq LIMIT ${MAX_LOOKED_AT})`,
    );
    return { queued: queued.n, retrying: retrying?.n ?? 0 };
  }

  find(id: string): QueueItem | undefined {
    const row = this.#tables.get<QueueRow>(sql`SELECT * FROM _signalbox_queue WHERE id = ${id}`);
    return row === undefined ? undefined : toItem(row);
  }

  /** At most `limit` items in order, starting after the position `after`. */
  list(limit: number, after = BEGINNING): { items: QueueItem[]; next: number | null } {
    const rows = this.#tables.all<QueueRow>(
      sql`SELECT * FROM _signalbox_queue WHERE seq > ${after} ORDER BY seq LIMIT ${limit + 1}`,
    );
    const page = rows.slice(0, limit);
    return { items: page.map(toItem), next: rows.length > limit ? (page.at(-1)?.seq ?? null) : null };
  }

  all(): QueueItem[] {
    return this.#tables.all<QueueRow>(sql`SELECT * FROM _signalbox_queue ORDER BY seq`).map(toItem);
  }

  count(): number {
    return this.#tables.get<{ n: number }>(sql`SELECT count(*) AS n FROM _signalbox_queue`)?.n ?? 0;
  }

  /** When the next attempt of any item may start, `now` at the earliest; null when the queue is empty. */
  nextAt(now = this.#clock.now()): number | null {
    const first = this.#tables.get<{ at: number }>(
      sql`SELECT next_at AS at FROM _signalbox_queue ORDER BY seq LIMIT 1`,
    );
    if (first === undefined) return null;
    // The first item is almost always ready. The others matter only when it waits for another attempt.
    if (requireNumber(first.at) <= now) return now;
    const next = this.#tables.get<{ at: number }>(sql`SELECT min(next_at) AS at FROM _signalbox_queue`);
    return Math.max(now, requireNumber(next?.at));
  }

  /**
   * Takes the first item that is ready and counts the attempt; null when none is ready. Called in a transaction of its own. `isResumed`: the storage ended
   * the last attempt, which is repeated and not counted again.
   */
  begin(isResumed = false): QueueAttempt | null {
    const found = this.#firstReady(isResumed);
    if (found === null) return null;
    const { row, policy, attempts } = found;
    const { changes } = this.#tables.change(
      sql`UPDATE _signalbox_queue SET attempts = ${attempts}
          WHERE seq = ${row.seq} AND attempts = ${row.attempts} AND next_at = ${row.next_at}`,
    );
    requireChange(changes);
    return {
      item: toItem({ ...row, attempts }),
      complete: () => {
        // An item that replaced this one in the meantime has another count of attempts, and stays.
        this.#tables.change(
          sql`DELETE FROM _signalbox_queue WHERE seq = ${row.seq} AND attempts = ${attempts}`,
        );
      },
      fail: (error) => {
        const message = errorText(error);
        const advice = row.callback === QUEUED_WEBHOOK ? adviseRetry(error) : null;
        if (attempts >= policy.maxAttempts || advice?.isFinal === true)
          return this.#bury({ ...row, attempts }, message) > 0;
        const nextAt = this.#clock.now() + Math.max(retryDelay(attempts, policy), advice?.notBeforeMs ?? 0);
        this.#tables.change(
          sql`UPDATE _signalbox_queue SET next_at = ${nextAt}, last_error = ${message}
              WHERE seq = ${row.seq} AND attempts = ${attempts}`,
        );
        this.#onChange();
        return false;
      },
    };
  }

  /** The first item that is ready and has attempts left. Those without have ended the process in their last attempt. */
  #firstReady(isResumed: boolean): ReadyItem | null {
    const now = this.#clock.now();
    for (;;) {
      const row = this.#tables.get<QueueRow>(
        sql`SELECT * FROM _signalbox_queue WHERE next_at <= ${now} ORDER BY seq LIMIT 1`,
      );
      if (row === undefined) return null;
      const policy = fromStoredRetry(row.retry);
      const attempts = nextAttempt(requireNumber(row.attempts), isResumed);
      if (attempts <= policy.maxAttempts) return { row, policy, attempts };
      requireChange(this.#bury(row, "the process ended while the last attempt ran"));
    }
  }

  /** Returns 0 if the item was removed or replaced meanwhile. */
  #bury(row: QueueRow, error: string): number {
    const { changes } = this.#tables.change(
      sql`DELETE FROM _signalbox_queue WHERE seq = ${row.seq} AND attempts = ${row.attempts}`,
    );
    if (changes === 0) return 0;
    this.#deadLetters.add({
      id: row.id,
      origin: "queue",
      callback: row.callback,
      payload: row.payload,
      retry: row.retry,
      attempts: row.attempts,
      error,
      createdAt: row.created_at,
    });
    return changes;
  }
}

function toItem(row: QueueRow): QueueItem {
  return {
    id: row.id,
    callback: row.callback,
    payload: fromStoredPayload(row.payload),
    createdAt: row.created_at,
    attempts: row.attempts,
    nextAttemptAt: Math.max(row.next_at, row.created_at),
    lastError: row.last_error,
  };
}

/** The name and message of an error, shortened, for storing and showing. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? storedErrorText(toStoredError(error)) : messageOf(error);
  return text.length > 1000 ? `${text.slice(0, 1000)}…` : text;
}

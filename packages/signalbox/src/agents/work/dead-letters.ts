/** Work that used up its attempts, kept until it is replayed or discarded. */
import { ulid } from "../../core/ulid.ts";
import type { Clock } from "../../core/clock.ts";
import { sql } from "../../core/sql.ts";
import { fromStoredPayload } from "./payload.ts";
import { AT_ONCE, type WorkTables } from "./work-tables.ts";

export interface DeadLetter<Payload = unknown> {
  readonly id: string;
  /** Id of the original queue item or schedule. */
  readonly itemId: string;
  readonly origin: "queue" | "schedule";
  readonly callback: string;
  readonly payload: Payload;
  readonly attempts: number;
  /** Error of the last attempt. */
  readonly error: string;
  readonly createdAt: number;
  readonly failedAt: number;
}

export interface NewDeadLetter {
  readonly id: string;
  readonly origin: "queue" | "schedule";
  readonly callback: string;
  /** JSON. */
  readonly payload: string | null;
  readonly retry: string | null;
  readonly attempts: number;
  readonly error: string;
  readonly createdAt: number;
}

/** More letters are counted as this many. */
const MAX_COUNTED = 10_000;

interface DeadLetterRow {
  readonly id: string;
  readonly item_id: string;
  readonly origin: "queue" | "schedule";
  readonly callback: string;
  readonly payload: string | null;
  readonly retry: string | null;
  readonly attempts: number;
  readonly error: string;
  readonly created_at: number;
  readonly failed_at: number;
}

interface DeadLetterChanges {
  /** An item has been added to the queue. */
  workChanged(): void;
  lettersChanged(): void;
}

export class DeadLetters {
  readonly #tables: WorkTables;
  readonly #clock: Clock;
  readonly #changes: DeadLetterChanges;

  constructor(tables: WorkTables, clock: Clock, changes: DeadLetterChanges) {
    this.#changes = changes;
    this.#tables = tables;
    this.#clock = clock;
  }

  add(letter: NewDeadLetter): void {
    const now = this.#clock.now();
    this.#tables.insert(
      sql`INSERT INTO _signalbox_dead_letter (id, item_id, origin, callback, payload, retry, attempts, error, created_at, failed_at)
          VALUES (${ulid(now)}, ${letter.id}, ${letter.origin}, ${letter.callback}, ${letter.payload}, ${letter.retry},
                  ${letter.attempts}, ${letter.error}, ${letter.createdAt}, ${now})`,
    );
    this.#changes.lettersChanged();
  }

  count(): number {
    return this.#tables.get<{ n: number }>(sql`SELECT count(*) AS n FROM _signalbox_dead_letter`)?.n ?? 0;
  }

  /** For lists of instances: bounded, because it is counted again with every letter. */
  figure(): number {
    return (
      this.#tables.get<{ n: number }>(
        sql`SELECT count(*) AS n FROM (SELECT 1 FROM _signalbox_dead_letter LIMIT ${MAX_COUNTED})`,
      )?.n ?? 0
    );
  }

  /** Oldest first. */
  list(limit: number, after = ""): { items: DeadLetter[]; next: string | null } {
    const rows = this.#tables.all<DeadLetterRow>(
      sql`SELECT * FROM _signalbox_dead_letter WHERE id > ${after} ORDER BY id LIMIT ${limit + 1}`,
    );
    const page = rows.slice(0, limit);
    return { items: page.map(toDeadLetter), next: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
  }

  find(id: string): DeadLetter | undefined {
    const row = this.#row(id);
    return row === undefined ? undefined : toDeadLetter(row);
  }

  remove(id: string): boolean {
    const { changes } = this.#tables.change(sql`DELETE FROM _signalbox_dead_letter WHERE id = ${id}`);
    if (changes > 0) this.#changes.lettersChanged();
    return changes > 0;
  }

  /** The ids of the oldest letters, at most `limit`. */
  ids(limit: number): string[] {
    return this.#tables
      .all<{ id: string }>(sql`SELECT id FROM _signalbox_dead_letter ORDER BY id LIMIT ${limit}`)
      .map(({ id }) => id);
  }

  /** Returns the work to the end of the queue with all its attempts, in one transaction; false when the id is unknown. */
  replay(id: string): boolean {
    const row = this.#row(id);
    if (row === undefined) return false;
    this.#tables.insert(
      sql`INSERT INTO _signalbox_queue (id, callback, payload, retry, next_at, created_at)
          VALUES (${row.id}, ${row.callback}, ${row.payload}, ${row.retry}, ${AT_ONCE}, ${row.created_at})
          ON CONFLICT (id) DO NOTHING`,
    );
    this.#changes.workChanged();
    return this.remove(id);
  }

  #row(id: string): DeadLetterRow | undefined {
    return this.#tables.get<DeadLetterRow>(sql`SELECT * FROM _signalbox_dead_letter WHERE id = ${id}`);
  }
}

function toDeadLetter(row: DeadLetterRow): DeadLetter {
  return {
    id: row.id,
    itemId: row.item_id,
    origin: row.origin,
    callback: row.callback,
    payload: fromStoredPayload(row.payload),
    attempts: row.attempts,
    error: row.error,
    createdAt: row.created_at,
    failedAt: row.failed_at,
  };
}

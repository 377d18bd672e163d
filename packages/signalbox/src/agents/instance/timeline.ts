/**
 * The last turns of each instance, for the timeline: what ran, when, how long, with which payload, and what it changed in the state. Stored in the
 * control plane, so that it survives the memory of the instance, a restart and a move, and is read without opening the instance.
 *
 * Invariants:
 * 1. Recording waits for nothing and fails no turn. Records are written in batches within `FLUSH_MS`; a crash loses those that wait.
 * 2. What recording costs is bounded whatever the load: at most `RECORDS_PER_SECOND` in the long run, at most `BURST` at once, and of one instance
 *    at most `OF_INSTANCE_PER_SECOND`. Turns beyond are counted, not recorded.
 * 3. What is stored is bounded: about `KEPT` records of an instance, `KEPT_IN_ALL` of all, none older than `KEPT_MS`, each of some kilobytes.
 * 4. No account displaces another: it takes records only while it has not taken more than twice what is left, and the oldest records that make room
 *    are those of the accounts that have most.
 * 5. The records of an instance end with it.
 * See docs/decisions/0530.
 */
import { RowsStatement } from "../../core/rows-statement.ts";
import { joinSql, sql, sqlList, type SqlQuery } from "../../core/sql.ts";
import { TokenBucket } from "../../core/token-bucket.ts";
import { type Repetition, repeat } from "../../core/repeat.ts";
import { ulid, ulidFloor } from "../../core/ulid.ts";
import { withoutNul } from "../../core/without-nul.ts";
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../database/database.ts";
import { type InstanceRef, keyOf } from "./instance-ref.ts";
import type { StateChanges } from "./state-changes.ts";

/** A turn as it is recorded. */
export interface NewRecord {
  /** When the turn began. */
  readonly at: number;
  readonly durationMs: number;
  readonly kind: string;
  /** What ran: a method, the type of an event, a path. */
  readonly label: string;
  /** The id of the event or of the work; null if it has none. */
  readonly reference: string | null;
  /** The message of the error; null for a turn that succeeded. */
  readonly error: string | null;
  /** The stored failure with the stack. */
  readonly failureId: string | null;
  /** In bounded length. */
  readonly payload: string | null;
  /** Null if the turn did not write the state. */
  readonly state: StateChanges | null;
}

/** A turn in a list. */
export interface RecordSummary {
  readonly id: string;
  readonly at: number;
  readonly duration_us: number;
  readonly kind: string;
  readonly label: string;
  readonly reference: string | null;
  readonly error: string | null;
  readonly failure_id: string | null;
  readonly skipped: number;
  readonly changes_state: number;
}

/** The recorded turns of an instance in the last hour. */
export interface RecentTurns {
  /** In each twelfth of it, with those that were skipped. */
  readonly counts: readonly number[];
  readonly p95Us: number;
}

export interface FullRecord extends RecordSummary {
  readonly payload: string | null;
  readonly state: string | null;
}

export interface RecordFilter {
  readonly kind: string | undefined;
  readonly failed: boolean;
  /** Only records before this one. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** How much of an instance was recorded lately. */
export class RecordPace {
  /** The second that `count` is about. */
  window = -1;
  count = 0;
  /** Turns since the last record that were not recorded. */
  skipped = 0;
}

export interface TimelineParts {
  readonly database: Database;
  readonly clock: Clock;
  /** Errors of writes; what could not be written is lost. */
  readonly onFailure: (error: unknown) => void;
  /** Numbers from 0 to 1. */
  readonly random?: () => number;
  /** Of all accounts. */
  readonly keptInAll?: number;
}

interface Pending extends NewRecord {
  readonly id: string;
  readonly ref: InstanceRef;
  readonly skipped: number;
}

const FLUSH_MS = 1000;
const RECORDS_PER_SECOND = 100;
const BURST = 400;
const OF_INSTANCE_PER_SECOND = 100;
/** Rows in one transaction: SQLite takes the event loop for a few milliseconds with them. */
const ROWS_AT_ONCE = 200;
const KEPT = 500;
const KEPT_IN_ALL = 200_000;
const KEPT_MS = 24 * 60 * 60 * 1000;
/** An instance's records are counted with one new record in so many. */
const PRUNE_INTERVAL = 32;
const PRUNE_MS = 10 * 60_000;
/** Deleted in one statement. */
const PRUNE_AT_ONCE = 2000;
const MAX_TEXT = 300;
const RECENT_STEPS = 12;
const RECENT_STEP_MS = 5 * 60_000;
/** Records that no writer has a chance to write are dropped, the oldest first. */
const MAX_PENDING = 5 * BURST;

const ADD = new RowsStatement(
  `INSERT INTO agent_turn (id, account_id, agent, name, at, duration_us, kind, label, reference, error, failure_id, skipped, payload, state) VALUES `,
  14,
);

export class Timeline {
  readonly #parts: TimelineParts;
  readonly #random: () => number;
  readonly #budget: TokenBucket;
  #pending: Pending[] = [];
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  /** Counts the seconds in which turns ended. */
  #window = 0;
  /** Records of this second by account. */
  readonly #taken = new Map<string, number>();
  #pruning: Repetition | null = null;

  constructor(parts: TimelineParts) {
    this.#parts = parts;
    this.#random = parts.random ?? Math.random;
    this.#budget = new TokenBucket(BURST, (BURST / RECORDS_PER_SECOND) * 1000);
  }

  /** Begins to delete old records. */
  start(): void {
    this.#pruning = repeat(PRUNE_MS, () => this.prune(), this.#parts.onFailure);
  }

  /** True if the next turn of the instance is to be recorded: the caller then adds it. Otherwise it is counted. */
  admits({ account }: InstanceRef, pace: RecordPace): boolean {
    // The second ends, also if nothing is recorded in it.
    this.#flushLater();
    if (pace.window !== this.#window) {
      pace.window = this.#window;
      pace.count = 0;
    }
    if (pace.count < OF_INSTANCE_PER_SECOND) {
      if (this.#take(account)) {
        pace.count += 1;
        return true;
      }
      // It does not ask again in this second: asking for every turn would cost more than the rest.
      pace.count = OF_INSTANCE_PER_SECOND;
    }
    pace.skipped += 1;
    return false;
  }

  #take(account: string): boolean {
    const taken = this.#taken.get(account) ?? 0;
    if (taken > 2 * this.#budget.left || this.#budget.take() > 0) return false;
    this.#taken.set(account, taken + 1);
    return true;
  }

  add(ref: InstanceRef, pace: RecordPace, record: NewRecord): void {
    const { skipped } = pace;
    pace.skipped = 0;
    this.#pending.push({ ...record, id: ulid(this.#parts.clock.now()), ref, skipped });
    this.#flushLater();
  }

  /** Newest first. */
  async list(ref: InstanceRef, { kind, failed, before, limit }: RecordFilter): Promise<RecordSummary[]> {
    await this.flush();
    const conditions = [
      ofInstance(ref),
      sql`id >= ${ulidFloor(Math.max(0, this.#parts.clock.now() - KEPT_MS))}`,
      ...(kind === undefined ? [] : [sql`kind = ${kind}`]),
      ...(failed ? [sql`error IS NOT NULL`] : []),
      ...(before === undefined ? [] : [sql`id < ${before}`]),
    ];
    return this.#parts.database.all<RecordSummary>(
      sql`SELECT id, at, duration_us, kind, label, reference, error, failure_id, skipped,
            CASE WHEN state IS NULL THEN 0 ELSE 1 END AS changes_state
          FROM agent_turn WHERE ${joinSql(conditions, " AND ")} ORDER BY id DESC LIMIT ${limit}`,
    );
  }

  /** What a page of instances did in the last hour; instances that did nothing are left out. */
  async recent(
    { account, agent }: Pick<InstanceRef, "account" | "agent">,
    names: readonly string[],
  ): Promise<Map<string, RecentTurns>> {
    if (names.length === 0) return new Map();
    const lastStep = Math.floor(this.#parts.clock.now() / RECENT_STEP_MS);
    const firstStep = lastStep - RECENT_STEPS + 1;
    const own = sql`account_id = ${account} AND agent = ${agent} AND name IN (${sqlList(names)})
      AND id >= ${ulidFloor(Math.max(0, firstStep * RECENT_STEP_MS))}`;
    const { database } = this.#parts;
    // An index finds the rows, and there are some hundred of each name.
    const turn = { account, kind: "page" } as const;
    const [steps, slow] = await Promise.all([
      database.scan<{ name: string; step: number; n: number }>(
        sql`SELECT name, at / CAST(${RECENT_STEP_MS} AS BIGINT) AS step, CAST(sum(1 + skipped) AS BIGINT) AS n
            FROM agent_turn WHERE ${own} GROUP BY 1, 2`,
        turn,
      ),
      database.scan<{ name: string; duration_us: number }>(
        sql`SELECT name, duration_us FROM (
              SELECT name, duration_us, row_number() OVER (PARTITION BY name ORDER BY duration_us DESC) AS place,
                count(*) OVER (PARTITION BY name) AS n FROM agent_turn WHERE ${own}) AS ranked
            WHERE place = n / 20 + 1`,
        turn,
      ),
    ]);
    const found = new Map(
      slow.map(({ name, duration_us: p95Us }) => [
        name,
        { counts: Array.from({ length: RECENT_STEPS }, () => 0), p95Us },
      ]),
    );
    for (const { name, step, n } of steps) {
      const counts = found.get(name)?.counts;
      if (counts !== undefined && step >= firstStep && step <= lastStep) counts[step - firstStep] = n;
    }
    return found;
  }

  async find(ref: InstanceRef, id: string): Promise<FullRecord | undefined> {
    await this.flush();
    return this.#parts.database.get<FullRecord>(
      sql`SELECT id, at, duration_us, kind, label, reference, error, failure_id, skipped, payload, state,
            CASE WHEN state IS NULL THEN 0 ELSE 1 END AS changes_state
          FROM agent_turn WHERE ${ofInstance(ref)} AND id = ${id}`,
    );
  }

  /** The instance does not exist any more. */
  async remove(ref: InstanceRef): Promise<void> {
    const key = keyOf(ref);
    this.#pending = this.#pending.filter((record) => keyOf(record.ref) !== key);
    await this.#writing;
    await this.#parts.database.run(sql`DELETE FROM agent_turn WHERE ${ofInstance(ref)}`);
  }

  /** Writes what waits. Never rejects. */
  flush(): Promise<void> {
    if (this.#pending.length > 0) this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.#pruning?.stop();
    clearTimeout(this.#timer);
    await this.flush();
  }

  #flushLater(): void {
    // `endSecond` never rejects.
    this.#timer ??= setTimeout(() => void this.endSecond(), FLUSH_MS).unref();
  }

  /** Writes what waits, and every account may record again. Never rejects. */
  endSecond(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#window += 1;
    this.#taken.clear();
    return this.flush();
  }

  async #write(): Promise<void> {
    const records = this.#pending.slice(-MAX_PENDING);
    this.#pending = [];
    try {
      for (let at = 0; at < records.length; at += ROWS_AT_ONCE)
        await this.#writeSome(records.slice(at, at + ROWS_AT_ONCE));
    } catch (error) {
      this.#parts.onFailure(error);
    }
  }

  async #writeSome(records: readonly Pending[]): Promise<void> {
    const long = new Map<string, InstanceRef>();
    for (const { ref } of records) if (this.#random() * PRUNE_INTERVAL < 1) long.set(keyOf(ref), ref);
    await this.#parts.database.transaction(
      async (tx) => {
        await ADD.run(tx, records.flatMap(toRow));
        for (const ref of long.values()) {
          await tx.run(
            sql`DELETE FROM agent_turn WHERE ${ofInstance(ref)} AND id <=
                  (SELECT id FROM agent_turn WHERE ${ofInstance(ref)} ORDER BY id DESC LIMIT 1 OFFSET ${KEPT})`,
          );
        }
      },
      { scope: "agent_turn", isConcurrent: true },
    );
  }

  /** Deletes what is too old or too much. The ids begin with their time, so the oldest are the first of the primary key. */
  async prune(): Promise<void> {
    const { clock, database } = this.#parts;
    await this.#deleteWhere(sql`id < ${ulidFloor(Math.max(0, clock.now() - KEPT_MS))}`);
    const counts = await database.scan<{ account: string; n: number }>(
      sql`SELECT account_id AS account, count(*) AS n FROM agent_turn GROUP BY account_id`,
      { account: "", kind: "search" },
    );
    const share = equalShare(
      counts.map(({ n }) => n),
      this.#parts.keptInAll ?? KEPT_IN_ALL,
    );
    for (const { account, n } of counts) {
      if (n <= share) continue;
      const [first] = await database.scan<{ id: string }>(
        sql`SELECT id FROM agent_turn WHERE account_id = ${account} ORDER BY id DESC LIMIT 1 OFFSET ${share}`,
        { account: "", kind: "search" },
      );
      if (first !== undefined) await this.#deleteWhere(sql`account_id = ${account} AND id <= ${first.id}`);
    }
  }

  async #deleteWhere(condition: SqlQuery): Promise<void> {
    let changes: number;
    do {
      ({ changes } = await this.#parts.database.run(
        sql`DELETE FROM agent_turn WHERE id IN
            (SELECT id FROM agent_turn WHERE ${condition} ORDER BY id LIMIT ${PRUNE_AT_ONCE})`,
      ));
    } while (changes === PRUNE_AT_ONCE);
  }
}

/** How many records each account may keep, so that all together have no more than `room`. */
function equalShare(counts: readonly number[], room: number): number {
  let left = room;
  const sorted = counts.toSorted((a, b) => a - b);
  for (const [i, count] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - i));
    if (count > share) return share;
    left -= count;
  }
  return Number.POSITIVE_INFINITY;
}

function ofInstance({ account, agent, name }: InstanceRef) {
  return sql`account_id = ${account} AND agent = ${agent} AND name = ${name}`;
}

function toRow(record: Pending) {
  const { ref, state } = record;
  return [
    record.id,
    ref.account,
    ref.agent,
    ref.name,
    Math.round(record.at),
    Math.round(record.durationMs * 1000),
    record.kind,
    toText(record.label),
    record.reference === null ? null : toText(record.reference),
    record.error === null ? null : toText(record.error),
    record.failureId,
    record.skipped,
    record.payload === null ? null : withoutNul(record.payload),
    state === null ? null : withoutNul(JSON.stringify(state)),
  ];
}

function toText(text: string): string {
  return withoutNul(text.slice(0, MAX_TEXT));
}

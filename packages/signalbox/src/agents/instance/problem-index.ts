/**
 * Writes to the control plane what is wrong with instances: numbers of their work and their last errors. So that all instances with problems are found
 * without opening their databases, also after a restart and at any node.
 *
 * Invariants:
 * 1. The number of dead letters is written before the sync that makes the letters durable: a crash leaves no letter that the index does not know. (A
 *    crash in between leaves a number that is too large until the instance is next loaded.)
 * 2. The numbers of the queue are written some seconds later. A crash before that leaves old ones; an instance with queue items is woken after a
 *    restart and then counted.
 * 3. A load compares the numbers and corrects them.
 * 4. A node writes for its own instances only. What cannot be written is kept for the next attempt; the index is a convenience, and its failure fails
 *    no turn.
 * 5. Errors of all instances are written in batches: at most `ROWS_PER_FLUSH` in `FLUSH_MS`, of each instance at most `KEPT` are stored, and of all
 *    together at most `KEPT_IN_ALL`.
 * See agents/README.md.
 */
import { setImmediate } from "node:timers/promises";
import { RowsStatement } from "../../core/rows-statement.ts";
import { sql, type SqlValue } from "../../core/sql.ts";
import { type StoredError, storedErrorText, toStoredError } from "../../core/stored-error.ts";
import { ulid } from "../../core/ulid.ts";
import { withoutNul } from "../../core/without-nul.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { type InstanceRef, keyOf } from "./instance-ref.ts";

/** The numbers of an instance's work. */
export interface WorkFigures {
  readonly queued: number;
  readonly retrying: number;
  readonly deadLetters: number;
}

export const NO_WORK: WorkFigures = { queued: 0, retrying: 0, deadLetters: 0 };

/** A turn that failed, or a start. */
export interface Failure {
  readonly id: string;
  readonly at: number;
  readonly kind: string;
  readonly label: string;
  readonly error: StoredError;
}

export interface NewFailure {
  readonly at: number;
  readonly kind: string;
  readonly label: string;
  readonly error: unknown;
}

/** An instance in memory whose numbers may have changed. */
export interface Counted {
  readonly ref: InstanceRef;
  /** The numbers to write; null if they are as written. */
  take(): WorkFigures | null;
}

export interface ProblemIndexParts {
  readonly database: Database;
  /** Resolves when the entries of new instances are written. */
  readonly registered: () => Promise<void>;
  /** False for an instance that this node does not own. */
  readonly isOwn: (ref: InstanceRef) => boolean;
  /** Errors of writes that nothing waits for; they are retried. */
  readonly onFailure: (error: unknown) => void;
}

interface Change {
  readonly ref: InstanceRef;
  figures?: WorkFigures;
  lastError?: { readonly text: string; readonly at: number };
}

interface Pending extends Failure {
  readonly ref: InstanceRef;
}

/** Numbers of the queue wait this long. */
const COUNT_MS = 3000;
/** A few milliseconds. */
const COUNTED_AT_ONCE = 100;
/** Instances in one transaction: SQLite takes the event loop for a few milliseconds with them. */
const CHANGES_AT_ONCE = 200;
/** Errors wait this long. */
const FLUSH_MS = 1000;
const ROWS_PER_FLUSH = 100;
const KEPT = 10;
const KEPT_IN_ALL = 10_000;
const MAX_LABEL = 200;
/** The same scope as the catalog's, so that the writes of both have one order. */
const SCOPE = { scope: "agent_instance", isConcurrent: true };

const SET_FIGURES = new RowsStatement(
  `UPDATE agent_instance SET queued = CAST(v.column4 AS BIGINT), retrying = CAST(v.column5 AS BIGINT),
     dead_letters = CAST(v.column6 AS BIGINT) FROM (VALUES `,
  6,
  ") AS v WHERE account_id = v.column1 AND agent = v.column2 AND name = v.column3",
);
const SET_ERROR = new RowsStatement(
  `UPDATE agent_instance SET last_error = v.column4, last_error_at = CAST(v.column5 AS BIGINT) FROM (VALUES `,
  5,
  ") AS v WHERE account_id = v.column1 AND agent = v.column2 AND name = v.column3",
);
const ADD_FAILURES = new RowsStatement(
  "INSERT INTO agent_failure (id, account_id, agent, name, at, kind, label, error) VALUES ",
  8,
);

export class ProblemIndex {
  readonly #parts: ProblemIndexParts;
  readonly #counted = new Map<string, Counted>();
  #changes = new Map<string, Change>();
  #failures: Pending[] = [];
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #countTimer: NodeJS.Timeout | undefined;

  constructor(parts: ProblemIndexParts) {
    this.#parts = parts;
  }

  /** The numbers of the instance may have changed: they are read some seconds later. */
  countLater(counted: Counted): void {
    this.#counted.set(keyOf(counted.ref), counted);
    this.#countTimer ??= setTimeout(() => {
      this.#countTimer = undefined;
      // `settle` never rejects.
      void this.settle();
    }, COUNT_MS).unref();
  }

  /** Resolves when the numbers are written, or will be tried again. */
  countNow(counted: Counted): Promise<void> {
    this.#count(counted);
    return this.flush();
  }

  /** The instance leaves memory: its database can be read for the last time. */
  leave(counted: Counted): void {
    this.#count(counted);
    if (this.#changes.size > 0) this.#flushLater(FLUSH_MS);
  }

  /** Returns the id of the failure. */
  failed(ref: InstanceRef, { at, kind, label, error }: NewFailure): string {
    const change = this.#change(ref);
    // The stack of an error costs more than the rest.
    const isListed = this.#failures.length < ROWS_PER_FLUSH;
    const stored = isListed ? toStoredError(error) : { ...toStoredError(error), stack: null };
    change.lastError = { text: storedErrorText(stored).slice(0, 1000), at };
    const id = ulid(at);
    if (isListed)
      this.#failures.push({ ref, id, at, kind, label: withoutNul(label.slice(0, MAX_LABEL)), error: stored });
    this.#flushLater(FLUSH_MS);
    return id;
  }

  /** The last errors of an instance, newest first. */
  async failuresOf({ account, agent, name }: InstanceRef): Promise<Failure[]> {
    await this.flush();
    const rows = await this.#parts.database.all<FailureRow>(
      sql`SELECT id, at, kind, label, error FROM agent_failure
          WHERE account_id = ${account} AND agent = ${agent} AND name = ${name} ORDER BY id DESC LIMIT ${KEPT}`,
    );
    return rows.map(({ error, ...row }) => ({ ...row, error: JSON.parse(error) as StoredError }));
  }

  /** The instance does not exist any more. */
  async remove(ref: InstanceRef): Promise<void> {
    this.#drop(keyOf(ref));
    await this.#writing;
    // A write that failed meanwhile has kept it for the next attempt.
    this.#drop(keyOf(ref));
    await this.#parts.database.run(
      sql`DELETE FROM agent_failure WHERE account_id = ${ref.account} AND agent = ${ref.agent} AND name = ${ref.name}`,
    );
  }

  /** Reads the numbers of all instances that may have changed, and writes everything. Never rejects. */
  async settle(): Promise<void> {
    await this.#countAll();
    await this.flush();
  }

  /** Writes what waits. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#changes.size > 0 || this.#failures.length > 0)
      this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async close(): Promise<void> {
    clearTimeout(this.#countTimer);
    await this.settle();
    clearTimeout(this.#timer);
  }

  #drop(key: string): void {
    this.#counted.delete(key);
    this.#changes.delete(key);
    this.#failures = this.#failures.filter((failure) => keyOf(failure.ref) !== key);
  }

  /** In slices: thousands of busy instances take the event loop for half a second. */
  async #countAll(): Promise<void> {
    let count = 0;
    const all = [...this.#counted];
    for (const [key, counted] of all) {
      // It has left memory, or another call has counted it.
      if (this.#counted.get(key) !== counted) continue;
      this.#count(counted);
      count += 1;
      if (count % COUNTED_AT_ONCE === 0) await setImmediate();
    }
  }

  #count(counted: Counted): void {
    this.#counted.delete(keyOf(counted.ref));
    const figures = counted.take();
    if (figures !== null) this.#change(counted.ref).figures = figures;
  }

  #change(ref: InstanceRef): Change {
    const key = keyOf(ref);
    const known = this.#changes.get(key);
    if (known !== undefined) return known;
    const change: Change = { ref };
    this.#changes.set(key, change);
    return change;
  }

  #flushLater(delayMs: number): void {
    // `flush` never rejects.
    this.#timer ??= setTimeout(() => void this.flush(), delayMs).unref();
  }

  async #write(): Promise<void> {
    const changes = [...this.#changes.values()].toSorted(byKey);
    const failures = this.#failures;
    this.#changes = new Map();
    this.#failures = [];
    if (changes.length === 0 && failures.length === 0) return;
    let written = 0;
    try {
      await this.#parts.registered();
      do {
        const end = written + CHANGES_AT_ONCE;
        // The failures with the last of them: what fails is tried again, and their ids must be new then.
        await this.#writeSome(changes.slice(written, end), end < changes.length ? [] : failures);
        written = end;
      } while (written < changes.length);
    } catch (error) {
      this.#parts.onFailure(error);
      for (const change of changes.slice(written)) {
        const newer = this.#changes.get(keyOf(change.ref));
        this.#changes.set(keyOf(change.ref), { ...change, ...newer });
      }
      this.#failures = [...failures, ...this.#failures].slice(-ROWS_PER_FLUSH);
      this.#flushLater(COUNT_MS);
    }
  }

  async #writeSome(changes: readonly Change[], failures: readonly Pending[]): Promise<void> {
    const own = changes.filter(({ ref }) => this.#parts.isOwn(ref));
    await this.#parts.database.transaction(async (tx) => {
      await SET_FIGURES.run(tx, own.flatMap(figuresRow));
      await SET_ERROR.run(tx, changes.flatMap(errorRow));
      await addFailures(tx, failures);
    }, SCOPE);
  }
}

async function addFailures(tx: Queryable, failures: readonly Pending[]): Promise<void> {
  if (failures.length === 0) return;
  await ADD_FAILURES.run(
    tx,
    failures.flatMap(({ id, ref, at, kind, label, error }) => [
      id,
      ref.account,
      ref.agent,
      ref.name,
      at,
      kind,
      label,
      JSON.stringify(error),
    ]),
  );
  for (const { account, agent, name } of new Map(failures.map(({ ref }) => [keyOf(ref), ref])).values()) {
    const own = sql`account_id = ${account} AND agent = ${agent} AND name = ${name}`;
    await tx.run(
      sql`DELETE FROM agent_failure WHERE ${own} AND id <=
            (SELECT id FROM agent_failure WHERE ${own} ORDER BY id DESC LIMIT 1 OFFSET ${KEPT})`,
    );
  }
  await tx.run(
    sql`DELETE FROM agent_failure WHERE id <= (SELECT id FROM agent_failure ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_IN_ALL})`,
  );
}

interface FailureRow extends Omit<Failure, "error"> {
  readonly error: string;
}

function figuresRow({ ref, figures }: Change): SqlValue[] {
  if (figures === undefined) return [];
  return [ref.account, ref.agent, ref.name, figures.queued, figures.retrying, figures.deadLetters];
}

function errorRow({ ref, lastError }: Change): SqlValue[] {
  return lastError === undefined ? [] : [ref.account, ref.agent, ref.name, lastError.text, lastError.at];
}

/** All nodes write rows in the same order, so that they do not wait for each other in a circle. */
function byKey(a: Change, b: Change): number {
  return keyOf(a.ref) < keyOf(b.ref) ? -1 : 1;
}

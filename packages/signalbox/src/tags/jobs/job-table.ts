/** The tables of jobs: each statement of them stands here. */
import { RowsStatement } from "../../core/rows-statement.ts";
import { sql, type SqlValue } from "../../core/sql.ts";
import type { Database, Queryable, TransactionOptions } from "../../database/database.ts";
import type { WriteRefusal } from "../store/tag-write.ts";
import type { JobFailure, JobRequest, JobState, TagJob } from "./tag-job.ts";

/** A process keeps a job for so long after each of its steps. Only processes that share the database wait for it. */
const LEASE_MS = 10_000;
/** Failures of an old job that one transaction deletes. */
const PRUNE_STEP = 1000;

/** Jobs are created and end one at a time; their steps are transactions of their account. */
const SCOPE: TransactionOptions = { scope: "tag jobs", isConcurrent: true };

/** What a step of a job did. */
export interface JobProgress {
  readonly position: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly failures: readonly JobFailure[];
  readonly isDone: boolean;
}

interface JobRow {
  readonly id: string;
  readonly account_id: string;
  readonly actor: string;
  readonly request: string;
  readonly state: JobState;
  readonly upto: number;
  readonly position: number;
  readonly total: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly failed: number;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;
}

interface FailureRow {
  readonly resource_no: number;
  readonly type: string;
  readonly id: string;
  readonly zone_id: string;
  readonly parent_id: string;
  readonly reason: WriteRefusal;
}

const COLUMNS = sql`id, account_id, actor, request, state, upto, position, total, changed, unchanged, failed,
  created_at, started_at, ended_at`;

const insertFailures = new RowsStatement(
  "INSERT INTO tag_job_failure (job_id, resource_no, type, id, zone_id, parent_id, reason) VALUES ",
  7,
);

export class JobTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Stores a new job, unless the account has `maxRunning` of them; `record` runs in the same transaction. False if it was not stored. */
  async insert(job: TagJob, maxRunning: number, record: (tx: Queryable) => Promise<void>): Promise<boolean> {
    return this.#database.transaction(async (tx) => {
      const running = await tx.get<{ count: number }>(
        sql`SELECT count(*) AS count FROM tag_job WHERE account_id = ${job.accountId} AND state = 'running'`,
      );
      if ((running?.count ?? 0) >= maxRunning) return false;
      await tx.run(
        sql`INSERT INTO tag_job (id, account_id, actor, request, state, upto, position, total, changed, unchanged, failed, created_at)
            VALUES (${job.id}, ${job.accountId}, ${job.actor}, ${JSON.stringify(job.request)}, ${job.state}, ${job.upto},
                    ${job.position}, ${job.total}, 0, 0, 0, ${job.createdAt})`,
      );
      await record(tx);
      return true;
    }, SCOPE);
  }

  async find(accountId: string, id: string): Promise<TagJob | null> {
    const row = await this.#database.get<JobRow>(
      sql`SELECT ${COLUMNS} FROM tag_job WHERE account_id = ${accountId} AND id = ${id}`,
    );
    return row === undefined ? null : fromRow(row);
  }

  /** Newest first, before `before`. */
  async list(accountId: string, before: string | null, limit: number): Promise<TagJob[]> {
    const older = before === null ? sql`` : sql`AND id < ${before}`;
    const rows = await this.#database.all<JobRow>(
      sql`SELECT ${COLUMNS} FROM tag_job WHERE account_id = ${accountId} ${older} ORDER BY id DESC LIMIT ${limit}`,
    );
    return rows.map(fromRow);
  }

  /** Oldest first. */
  async running(): Promise<TagJob[]> {
    const rows = await this.#database.all<JobRow>(
      sql`SELECT ${COLUMNS} FROM tag_job WHERE state = 'running' ORDER BY id`,
    );
    return rows.map(fromRow);
  }

  async failures(jobId: string, after: number, limit: number): Promise<JobFailure[]> {
    const rows = await this.#database.all<FailureRow>(
      sql`SELECT resource_no, type, id, zone_id, parent_id, reason FROM tag_job_failure
          WHERE job_id = ${jobId} AND resource_no > ${after} ORDER BY resource_no LIMIT ${limit}`,
    );
    return rows.map(
      ({ resource_no: resourceNo, type, id, zone_id: zoneId, parent_id: parentId, reason }) => ({
        resourceNo,
        resource: { type, id, zoneId, parentId },
        reason,
      }),
    );
  }

  /**
   * Takes the job for `runner` until the transaction ends, and for `LEASE_MS` beyond. False if it has ended, if another process works on it, or if it
   * is elsewhere than at `position`.
   */
  async take(
    tx: Queryable,
    { id, position }: Pick<TagJob, "id" | "position">,
    runner: string,
    now: number,
  ): Promise<boolean> {
    const { changes } = await tx.run(
      sql`UPDATE tag_job SET runner = ${runner}, runner_until = ${now + LEASE_MS}, started_at = COALESCE(started_at, ${now})
          WHERE id = ${id} AND state = 'running' AND position = ${position}
            AND (runner IS NULL OR runner = ${runner} OR runner_until < ${now})`,
    );
    return changes === 1;
  }

  async advance(tx: Queryable, id: string, progress: JobProgress, now: number): Promise<void> {
    const { position, changed, unchanged, failures, isDone } = progress;
    const rows = failures.flatMap(({ resourceNo, resource, reason }): SqlValue[] => [
      id,
      resourceNo,
      resource.type,
      resource.id,
      resource.zoneId,
      resource.parentId,
      reason,
    ]);
    await insertFailures.run(tx, rows);
    await tx.run(
      sql`UPDATE tag_job SET position = ${position}, changed = changed + ${changed}, unchanged = unchanged + ${unchanged},
            failed = failed + ${failures.length}, state = ${isDone ? "done" : "running"},
            ended_at = ${isDone ? now : null} WHERE id = ${id}`,
    );
  }

  /** Ends a running job; `record` runs in the same transaction. No step of it commits afterwards. */
  async end(
    id: string,
    state: "cancelled" | "failed",
    now: number,
    record: (tx: Queryable) => Promise<void> = async () => undefined,
  ): Promise<void> {
    await this.#database.transaction(async (tx) => {
      await tx.run(
        sql`UPDATE tag_job SET state = ${state}, ended_at = ${now} WHERE id = ${id} AND state = 'running'`,
      );
      await record(tx);
    }, SCOPE);
  }

  /** Lets another process take the jobs of `runner` at once. */
  async release(runner: string): Promise<void> {
    await this.#database.run(
      sql`UPDATE tag_job SET runner = NULL WHERE state = 'running' AND runner = ${runner}`,
    );
  }

  /** Deletes jobs that ended before `before`, with their failures, in short transactions. */
  async prune(before: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const old = await this.#database.get<{ id: string }>(
        sql`SELECT id FROM tag_job WHERE ended_at IS NOT NULL AND ended_at < ${before} ORDER BY ended_at LIMIT 1`,
      );
      if (old === undefined) return;
      await this.#database.transaction(async (tx) => {
        const { changes } = await tx.run(
          sql`DELETE FROM tag_job_failure WHERE job_id = ${old.id} AND resource_no IN
              (SELECT resource_no FROM tag_job_failure WHERE job_id = ${old.id} ORDER BY resource_no LIMIT ${PRUNE_STEP})`,
        );
        if (changes < PRUNE_STEP) await tx.run(sql`DELETE FROM tag_job WHERE id = ${old.id}`);
      }, SCOPE);
    }
  }
}

function fromRow(row: JobRow): TagJob {
  return {
    id: row.id,
    accountId: row.account_id,
    actor: row.actor,
    request: JSON.parse(row.request) as JobRequest,
    state: row.state,
    upto: row.upto,
    position: row.position,
    total: row.total,
    changed: row.changed,
    unchanged: row.unchanged,
    failed: row.failed,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  };
}

/** The rows of jobs that are not settled. */
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import type { CustomCost } from "../step/call-options.ts";

/** Which job of which gateway. */
export interface JobRef {
  readonly accountId: string;
  readonly gatewayId: string;
  readonly provider: string;
  readonly id: string;
}

export interface JobDetails {
  /** The name of the API. */
  readonly api: string;
  /** Of the request that started the job. */
  readonly path: string;
  /** What of its query every request of this API needs. */
  readonly query: string;
  readonly model: string;
  /** What was reserved, by model. */
  readonly reserved: readonly {
    readonly model: string;
    readonly cost: number | null;
    readonly tokens: number;
  }[];
  /** Whether limits applied, so that the amount was held. */
  readonly isHeld: boolean;
  /** Which stored key of the gateway the request named. */
  readonly keyAlias: string | null;
  readonly tokenId: string | null;
  readonly metadata: string | null;
  readonly eventId: string | null;
  /** A price of the caller that counts. */
  readonly custom: CustomCost | undefined;
}

export interface StoredJob extends JobRef {
  readonly details: JobDetails;
  readonly createdAt: number;
}

interface JobRow {
  readonly account_id: string;
  readonly gateway_id: string;
  readonly provider: string;
  readonly job_id: string;
  readonly details: string;
  readonly created_at: number;
}

export class JobStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Whether other processes have jobs, too. */
  get isShared(): boolean {
    return this.#database.isShared === true;
  }

  async add(job: StoredJob, owner: string, dueAt: number): Promise<void> {
    await this.#database.run(
      sql`INSERT INTO gateway_job (account_id, gateway_id, provider, job_id, details, owner, created_at, due_at)
          VALUES (${job.accountId}, ${job.gatewayId}, ${job.provider}, ${job.id}, ${JSON.stringify(job.details)}, ${owner}, ${job.createdAt}, ${dueAt})
          ON CONFLICT DO NOTHING`,
    );
  }

  async find(ref: JobRef): Promise<StoredJob | undefined> {
    const row = await this.#database.get<JobRow>(
      sql`SELECT * FROM gateway_job WHERE account_id = ${ref.accountId} AND gateway_id = ${ref.gatewayId}
          AND provider = ${ref.provider} AND job_id = ${ref.id}`,
    );
    return row === undefined ? undefined : toJob(row);
  }

  /** Jobs to look after now: those of this process, and those of others that have not been looked after since `abandonedAt`. */
  async due(owner: string, now: number, abandonedAt: number): Promise<StoredJob[]> {
    const rows = await this.#database.all<JobRow>(
      sql`SELECT * FROM gateway_job WHERE due_at <= ${now} AND (owner = ${owner} OR due_at <= ${abandonedAt})
          ORDER BY due_at LIMIT 100`,
    );
    return rows.map(toJob);
  }

  async setDue(ref: JobRef, dueAt: number): Promise<void> {
    await this.#database.run(
      sql`UPDATE gateway_job SET due_at = ${dueAt} WHERE account_id = ${ref.accountId} AND gateway_id = ${ref.gatewayId}
          AND provider = ${ref.provider} AND job_id = ${ref.id}`,
    );
  }

  /** True for the one caller that settles the job. */
  async remove(ref: JobRef): Promise<boolean> {
    const { changes } = await this.#database.run(
      sql`DELETE FROM gateway_job WHERE account_id = ${ref.accountId} AND gateway_id = ${ref.gatewayId}
          AND provider = ${ref.provider} AND job_id = ${ref.id}`,
    );
    return changes === 1;
  }
}

function toJob(row: JobRow): StoredJob {
  return {
    accountId: row.account_id,
    gatewayId: row.gateway_id,
    provider: row.provider,
    id: row.job_id,
    details: JSON.parse(row.details) as JobDetails,
    createdAt: row.created_at,
  };
}

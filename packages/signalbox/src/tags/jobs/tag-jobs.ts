/** Jobs as the management routes use them: create, read, cancel. `job-runner.ts` runs them. */
import { SignalboxError } from "@signalbox/protocol";
import { currentWrite } from "../../contracts/audit-trail.ts";
import type { Clock } from "../../core/clock.ts";
import { ulid } from "../../core/ulid.ts";
import type { Queryable } from "../../database/database.ts";
import type { TagReader } from "../store/tag-reader.ts";
import type { JobRunner } from "./job-runner.ts";
import type { JobTable } from "./job-table.ts";
import type { JobFailure, JobRequest, TagJob } from "./tag-job.ts";

/** Of one account. They run one after the other. */
const MAX_RUNNING = 10;

export interface TagJobsParts {
  readonly table: JobTable;
  readonly runner: JobRunner;
  readonly reader: TagReader;
  readonly clock: Clock;
}

export class TagJobs {
  readonly #parts: TagJobsParts;

  constructor(parts: TagJobsParts) {
    this.#parts = parts;
  }

  /** The number of resources that a job would visit now. */
  async plan(accountId: string, request: JobRequest): Promise<number> {
    return (await this.#parts.reader.extent(accountId, request.query)).total;
  }

  /** Resolves when the job is durable. */
  async create(accountId: string, request: JobRequest, actor: string): Promise<TagJob> {
    const { table, runner, reader, clock } = this.#parts;
    const { total, last } = await reader.extent(accountId, request.query);
    const createdAt = clock.now();
    const job: TagJob = {
      id: ulid(createdAt),
      accountId,
      actor,
      request,
      state: "running",
      upto: last,
      position: -1,
      total,
      changed: 0,
      unchanged: 0,
      failed: 0,
      createdAt,
      startedAt: null,
      endedAt: null,
    };
    if (!(await audited((record) => table.insert(job, MAX_RUNNING, record)))) {
      throw new SignalboxError("conflict", { message: `${MAX_RUNNING} jobs of this account are running` });
    }
    runner.wake();
    return job;
  }

  async find(accountId: string, id: string): Promise<TagJob> {
    const job = await this.#parts.table.find(accountId, id);
    if (job === null) throw new SignalboxError("not_found", { message: "Job not found" });
    return job;
  }

  list(accountId: string, before: string | null, limit: number): Promise<TagJob[]> {
    return this.#parts.table.list(accountId, before, limit);
  }

  /** In the order in which the job visited the resources, after a resource number. */
  async failures(accountId: string, id: string, after: number, limit: number): Promise<JobFailure[]> {
    await this.find(accountId, id);
    return this.#parts.table.failures(id, after, limit);
  }

  /** Changes that were made stay. A job that has ended stays as it is. */
  async cancel(accountId: string, id: string): Promise<TagJob> {
    await this.find(accountId, id);
    const { table, clock } = this.#parts;
    await audited((record) => table.end(id, "cancelled", clock.now(), record));
    return this.find(accountId, id);
  }
}

/** The claim of the management write is stored with its change. */
async function audited<T>(change: (record: (tx: Queryable) => Promise<void>) => Promise<T>): Promise<T> {
  const write = currentWrite.getStore();
  const result = await change(async (tx) => {
    if (write?.isClaimed === false) await write.claimIn(tx);
  });
  if (result !== false) write?.committed(false);
  return result;
}

/**
 * Runs jobs in steps: a step changes some resources and moves the position of its job in one transaction.
 *
 *   running ─ all resources visited → done
 *      ├ cancelled by an operator → cancelled
 *      └ an error that waiting does not help → failed
 *
 * Invariants:
 * 1. A job visits each resource at most once, in the order of resource numbers, also over restarts, on several nodes and if its own changes make resources match
 *    or not match. Its counts are exact.
 * 2. A resource is changed only if it matches the query in the transaction of the change.
 * 3. The jobs of an account run one after the other, oldest first. Accounts take turns, step by step.
 * 4. Other writes of the account come between two steps.
 * 5. While storage is unavailable a job waits.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { matchesTags, parseCanonicalTags, SignalboxError } from "@signalbox/protocol";
import { currentWrite } from "../../contracts/audit-trail.ts";
import type { Clock } from "../../core/clock.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AccountNumbers } from "../store/account-numbers.ts";
import { readResourceRows, toTaggedResource } from "../store/resource-row.ts";
import { lockAccount } from "../store/tag-tables.ts";
import type { TagReader } from "../store/tag-reader.ts";
import type { TagWrite, WriteOutcome } from "../store/tag-write.ts";
import type { TagWriter } from "../store/tag-writer.ts";
import type { BatchResult } from "../store/write-batch.ts";
import type { JobTable } from "./job-table.ts";
import type { JobFailure, TagJob } from "./tag-job.ts";

/** Numbers that are read from the index at a time; a step visits the next of them. */
const SELECTED = 1010;
/** Resources of one step: some twenty milliseconds, for which other writes of the account wait. */
const STEP = 101;
/** For jobs of a node that is gone, and after an error. */
const POLL_MS = 2000;

export interface JobRunnerParts {
  readonly table: JobTable;
  readonly accounts: AccountNumbers;
  readonly reader: TagReader;
  readonly writer: TagWriter;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Names this process in the rows of jobs. A process that is alone has always the same name, so that it need not wait for itself after a restart. */
  readonly runner: string;
}

/** Numbers of resources after the position of a job, and whether there are more after them. */
interface Selected {
  readonly position: number;
  readonly numbers: readonly number[];
  readonly isLast: boolean;
}

export class JobRunner {
  readonly #parts: JobRunnerParts;
  readonly #selected = new Map<string, Selected>();
  #running: Promise<void> = Promise.resolve();
  #polling: Repetition | null = null;
  #isStopped = false;

  constructor(parts: JobRunnerParts) {
    this.#parts = parts;
  }

  start(): void {
    this.wake();
    this.#polling = repeat(
      POLL_MS,
      () => {
        this.wake();
        return this.#running;
      },
      () => undefined,
    );
  }

  /** Begins with new jobs at once. */
  wake(): void {
    // A job is not a part of the request that created it.
    currentWrite.run(undefined, () => {
      this.#running = this.#running
        .then(() => this.#runAll())
        .catch((err: unknown) =>
          this.#parts.logger.warn({ err }, "a job on tags was interrupted; it goes on later"),
        );
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#polling?.stop();
    await this.#running;
    // Another node need not wait for the lease. If this fails, it waits.
    await this.#parts.table.release(this.#parts.runner).catch(() => undefined);
  }

  async #runAll(): Promise<void> {
    for (let isAdvanced = true; isAdvanced && !this.#isStopped;) {
      isAdvanced = false;
      const jobs = firstOfEachAccount(await this.#parts.table.running());
      for (const id of this.#selected.keys()) {
        if (!jobs.some((job) => job.id === id)) this.#selected.delete(id);
      }
      for (const job of jobs) {
        if (this.#isStopped) return;
        isAdvanced = (await this.#step(job)) || isAdvanced;
        await nextTurn();
      }
    }
  }

  /** False if the job has ended meanwhile, or another process works on it. */
  async #step(job: TagJob): Promise<boolean> {
    try {
      return await this.#change(job, await this.#select(job));
    } catch (error) {
      if (error instanceof SignalboxError) throw error;
      this.#parts.logger.error({ err: error, job: job.id }, "a job on tags has failed");
      await this.#parts.table.end(job.id, "failed", this.#parts.clock.now());
      return true;
    }
  }

  async #select(job: TagJob): Promise<Selected> {
    const known = this.#selected.get(job.id);
    if (known?.position === job.position && (known.numbers.length > 0 || known.isLast)) return known;
    const { query } = job.request;
    const found = await this.#parts.reader.numbers(job.accountId, query, job.position, SELECTED);
    const numbers = found.filter((number) => number <= job.upto);
    return { position: job.position, numbers, isLast: numbers.length < SELECTED };
  }

  async #change(job: TagJob, selected: Selected): Promise<boolean> {
    const { table, accounts, writer, clock, runner } = this.#parts;
    const numbers = selected.numbers.slice(0, STEP);
    const accountNo = await accounts.findOrCreate(job.accountId);
    let { position } = job;
    const isTaken = await writer.transaction(accountNo, async (tx, execute) => {
      const now = clock.now();
      if (!(await table.take(tx, job, runner, now))) return false;
      await lockAccount(tx, accountNo);
      const found = (await readResourceRows(tx, accountNo, numbers)).flatMap((row) => {
        const resource = toTaggedResource(row);
        const isMatching = resource !== null && isFound(job, resource.tags);
        return isMatching ? [{ number: row.resource_no, write: toWrite(job, resource) }] : [];
      });
      const batch = found.length === 0 ? NOTHING : await execute(found.map(({ write }) => write));
      position = numbers.at(-1) ?? job.position;
      const isDone = selected.isLast && numbers.length === selected.numbers.length;
      await table.advance(tx, job.id, { position, ...count(found, batch), isDone }, now);
      return true;
    });
    if (isTaken) {
      const rest = selected.numbers.filter((number) => number > position);
      this.#selected.set(job.id, { position, numbers: rest, isLast: selected.isLast });
    } else {
      this.#selected.delete(job.id);
    }
    return isTaken;
  }
}

const NOTHING: BatchResult = { outcomes: [], previous: [], hasChanges: false };

function firstOfEachAccount(jobs: readonly TagJob[]): TagJob[] {
  const accounts = new Set<string>();
  return jobs.filter(({ accountId }) => !accounts.has(accountId) && accounts.add(accountId));
}

function isFound({ request: { query } }: TagJob, text: string): boolean {
  const tags = parseCanonicalTags(text);
  return tags.size > 0 && matchesTags(query.filters, tags, query.isCaseInsensitive);
}

function toWrite({ request, actor }: TagJob, { type, id, zoneId, parentId }: TagWrite["resource"]): TagWrite {
  const resource = { type, id, zoneId, parentId };
  return { action: request.operation, resource, tags: new Map(request.tags), condition: null, actor };
}

function count(
  found: readonly { readonly number: number; readonly write: TagWrite }[],
  { outcomes, previous }: BatchResult,
): { changed: number; unchanged: number; failures: JobFailure[] } {
  const failures: JobFailure[] = [];
  let changed = 0;
  for (const [i, outcome] of outcomes.entries()) {
    const visited = found[i];
    if (outcome.kind === "refused" && visited !== undefined) {
      failures.push({ resourceNo: visited.number, resource: visited.write.resource, reason: outcome.reason });
    } else if (etagAfter(outcome) !== previous[i]?.etag) {
      changed += 1;
    }
  }
  return { changed, unchanged: outcomes.length - changed - failures.length, failures };
}

function etagAfter(outcome: WriteOutcome): string | undefined {
  return outcome.kind === "stored" ? outcome.resource.etag : undefined;
}

/** Jobs on both databases: what they visit and count, over restarts, nodes, cancellations and failures. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import { rawSql } from "../../core/sql.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { migrate, tablesOfMigrations } from "../../database/migrate.ts";
import { PostgresDatabase } from "../../database/postgres/postgres-database.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { AccountNumbers } from "../store/account-numbers.ts";
import { A, buildStore, idsOf, query, type Store, write } from "../store/contract/test-store.ts";
import { JobRunner } from "./job-runner.ts";
import { type JobProgress, JobTable } from "./job-table.ts";
import type { JobRequest, TagJob } from "./tag-job.ts";
import { TagJobs } from "./tag-jobs.ts";

/** Several steps of a job. */
const RESOURCES = 450;
/** Few enough uses for some values of the tests to have bitmaps. */
const BITMAP_MIN_USES = 20;

/** Counts steps, and calls `onRound` between them. */
class WatchedTable extends JobTable {
  steps = 0;
  onRound: () => unknown = () => undefined;

  override async running(): Promise<TagJob[]> {
    await this.onRound();
    return super.running();
  }

  override async advance(tx: Queryable, id: string, progress: JobProgress, now: number): Promise<void> {
    await super.advance(tx, id, progress, now);
    this.steps += 1;
  }
}

interface Process {
  readonly table: WatchedTable;
  readonly runner: JobRunner;
  readonly jobs: TagJobs;
}

function startProcess(store: Store, name = "alone"): Process {
  const { database, reader, writer } = store;
  const clock = { now: () => store.clock.time };
  const table = new WatchedTable(database);
  const logger = pino({ level: "silent" });
  const accounts = new AccountNumbers(database);
  const runner = new JobRunner({ table, accounts, reader, writer, clock, logger, runner: name });
  return { table, runner, jobs: new TagJobs({ table, runner, reader, clock }) };
}

const patch = (tags: Record<string, string | null>, filters: readonly string[]): JobRequest => ({
  query: query(filters),
  operation: "patch",
  tags: Object.entries(tags),
});

const ended = (jobs: TagJobs, { id }: TagJob): Promise<TagJob> =>
  waitUntil(
    () => jobs.find(A, id),
    ({ state }) => state !== "running",
  );

async function fill(store: Store): Promise<void> {
  const writes = Array.from({ length: RESOURCES }, (_, i) =>
    write(`r${i}`, { env: i % 3 === 0 ? "prod" : "dev", n: String(i) }),
  );
  await store.writer.load(A, writes);
}

const folder = mkdtempSync(join(tmpdir(), "signalbox-tag-jobs-"));
let postgres: TestPostgres;
let count = 0;
beforeAll(async () => {
  postgres = await openTestPostgres();
});
afterAll(async () => {
  await postgres.drop();
  rmSync(folder, { recursive: true, force: true });
});

const rethrow = (error: Error) => {
  throw error;
};
const TABLES = [...tablesOfMigrations()].filter((name) => name.startsWith("tag_"));
const ENGINES: Readonly<Record<string, () => Promise<Database>>> = {
  SQLite: () => SqliteDatabase.open(join(folder, `${count++}.db`), rethrow),
  PostgreSQL: () => PostgresDatabase.open(postgres.url, rethrow),
};

describe.each(Object.keys(ENGINES))("jobs on tags on %s", (engine) => {
  let store: Store;
  let database: Database;
  beforeAll(async () => {
    database = await (ENGINES[engine] as () => Promise<Database>)();
    await migrate(database);
  });
  afterAll(() => database.close());

  const withResources = async (work: (store: Store) => Promise<void>) => {
    for (const table of TABLES) await database.run(rawSql(`DELETE FROM ${table}`));
    store = buildStore(database, BITMAP_MIN_USES);
    await fill(store);
    await work(store);
  };

  it("a job changes each matching resource once and counts exactly, also if its change makes others match or not", () =>
    withResources(async ({ reader, log }) => {
      const { runner, jobs } = startProcess(store);
      runner.start();
      const job = await jobs.create(A, patch({ env: "production", n: "7" }, ["env=prod"]), "token:x");
      expect(job).toMatchObject({ state: "running", total: RESOURCES / 3 });
      expect(await ended(jobs, job)).toMatchObject({
        state: "done",
        changed: RESOURCES / 3,
        unchanged: 0,
        failed: 0,
        endedAt: store.clock.time,
      });
      expect(await reader.total(A, query(["env=production", "n=7"]))).toBe(RESOURCES / 3);
      expect(await reader.total(A, query(["env=prod"]))).toBe(0);
      const [change] = await log.history(A, write("r0", {}).resource, null, 10);
      expect(change).toMatchObject({
        action: "patch",
        actor: "token:x",
        after: { env: "production", n: "7" },
      });
      // Nothing matches any more, and what already has the tags is unchanged.
      const none = await ended(jobs, await jobs.create(A, patch({ a: "1" }, ["env=prod"]), "root"));
      expect(none).toMatchObject({ state: "done", total: 0, changed: 0, unchanged: 0 });
      const same = await ended(jobs, await jobs.create(A, patch({ n: "7" }, ["env=production"]), "root"));
      expect(same).toMatchObject({ changed: 0, unchanged: RESOURCES / 3 });
      const deletion: JobRequest = { query: query([]), operation: "delete", tags: [] };
      expect(await ended(jobs, await jobs.create(A, deletion, "root"))).toMatchObject({ changed: RESOURCES });
      expect(await idsOf(store, query([]))).toEqual([]);
      await runner.stop();
    }));

  it("a job that is interrupted in any of its steps goes on where it was, and two processes do nothing twice", () =>
    withResources(async ({ log }) => {
      const first = startProcess(store, "first");
      const stopped = new Promise<void>((resolve) => {
        first.table.onRound = () => {
          if (first.table.steps === 2) resolve(first.runner.stop());
        };
      });
      first.runner.start();
      const job = await first.jobs.create(A, patch({ seen: "yes" }, []), "root");
      await stopped;
      const interrupted = await first.jobs.find(A, job.id);
      expect(interrupted.state).toBe("running");
      expect(interrupted.changed).toBeGreaterThan(0);
      // The first process has released the job.
      const others = [startProcess(store, "second"), startProcess(store, "third")];
      for (const { runner } of others) runner.start();
      expect(await ended(first.jobs, job)).toMatchObject({ state: "done", changed: RESOURCES, unchanged: 0 });
      const changes = await log.changes(A, 0, 2 * RESOURCES);
      expect(new Set(changes.map(({ resource }) => resource.id)).size).toBe(RESOURCES);
      expect(changes).toHaveLength(RESOURCES);
      for (const { runner } of others) await runner.stop();
    }));

  it("the job of a process that is gone is taken over when its lease has ended", () =>
    withResources(async () => {
      const gone = startProcess(store, "gone");
      const job = await gone.jobs.create(A, patch({ seen: "yes" }, []), "root");
      await gone.runner.stop();
      await database.transaction(
        async (tx) => void (await gone.table.take(tx, job, "gone", store.clock.time)),
      );
      const next = startProcess(store, "next");
      expect(await database.transaction((tx) => next.table.take(tx, job, "next", store.clock.time))).toBe(
        false,
      );
      next.runner.start();
      store.clock.time += 11_000;
      expect(await ended(next.jobs, job)).toMatchObject({ state: "done", changed: RESOURCES });
      await next.runner.stop();
    }));

  it("a cancelled job changes nothing more, and its changes stay", () =>
    withResources(async ({ reader }) => {
      const { table, runner, jobs } = startProcess(store);
      const created = Promise.withResolvers<TagJob>();
      const ending = new Promise<TagJob>((resolve) => {
        table.onRound = async () => {
          if (table.steps === 2) resolve(await jobs.cancel(A, (await created.promise).id));
        };
      });
      const job = await jobs.create(A, patch({ seen: "yes" }, []), "root");
      created.resolve(job);
      const cancelled = await ending;
      expect(cancelled).toMatchObject({ state: "cancelled", endedAt: store.clock.time });
      expect(await reader.total(A, query(["seen"]))).toBe(cancelled.changed);
      await runner.stop();
      expect(await jobs.find(A, job.id)).toEqual(cancelled);
      expect(await reader.total(A, query(["seen"]))).toBe(cancelled.changed);
      expect(await jobs.cancel(A, job.id)).toEqual(cancelled);
    }));

  it("a resource that a job cannot change is listed with its reason, and the others are changed", () =>
    withResources(async ({ writer }) => {
      const many = Object.fromEntries(Array.from({ length: 99 }, (_, i) => [`k${i}`, ""]));
      await writer.write(A, write("full", { env: "prod", ...many }));
      const { table, runner, jobs } = startProcess(store);
      runner.start();
      const job = await ended(jobs, await jobs.create(A, patch({ one: "more" }, ["env=prod"]), "root"));
      expect(job).toMatchObject({ state: "done", changed: RESOURCES / 3, failed: 1 });
      const failures = await jobs.failures(A, job.id, -1, 10);
      expect(failures).toMatchObject([{ resource: { id: "full" }, reason: "tags_too_many_tags" }]);
      await table.prune(store.clock.time + 1, new AbortController().signal);
      await expect(jobs.find(A, job.id)).rejects.toMatchObject({ code: 7003 });
      expect(await table.failures(job.id, -1, 10)).toEqual([]);
      await runner.stop();
    }));

  it("resources that are tagged after a job was created are left alone", () =>
    withResources(async ({ writer, reader }) => {
      const { runner, jobs } = startProcess(store);
      const job = await jobs.create(A, patch({ seen: "yes" }, []), "root");
      await writer.write(A, write("late", { env: "prod" }));
      runner.start();
      expect(await ended(jobs, job)).toMatchObject({ changed: RESOURCES });
      expect((await reader.find(A, write("late", {}).resource))?.tags).toBe('{"env":"prod"}');
      await runner.stop();
    }));
});

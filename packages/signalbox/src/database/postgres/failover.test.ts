/** A standby replaces the primary, with and without the commits that the primary acknowledged. */
import { Client } from "pg";
import { expect, it, onTestFinished } from "vitest";
import {
  openTestPostgres,
  type TestPostgres,
  type TestStandby,
} from "../../../../../test/support/test-postgres.ts";
import { rawSql } from "../../core/sql.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "./postgres-database.ts";
import type { LostCommits } from "./node-session.ts";

interface Pair {
  readonly primary: TestPostgres;
  readonly standby: TestStandby;
  /** Both servers, the primary first. */
  readonly url: string;
}

async function openPair(): Promise<Pair> {
  const primary = await openTestPostgres();
  onTestFinished(() => primary.drop());
  const standby = await primary.openStandby();
  onTestFinished(() => standby.drop());
  const { host } = new URL(primary.url);
  const url = primary.url.replace(host, `${host},${new URL(standby.url).host}`);
  await waitForReplication(primary);
  return { primary, standby, url };
}

async function ask<Row>(server: TestPostgres, text: string): Promise<Row[]> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  try {
    return (await client.query(text)).rows as Row[];
  } finally {
    await client.end();
  }
}

async function waitForReplication(primary: TestPostgres): Promise<void> {
  await expect
    .poll(() => ask(primary, "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))
    .toHaveLength(1);
}

async function makeSynchronous(primary: TestPostgres): Promise<void> {
  await ask(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'");
  await ask(primary, "SELECT pg_reload_conf()");
  await expect
    .poll(() => ask(primary, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
    .toHaveLength(1);
}

interface TestNode {
  readonly database: PostgresDatabase;
  readonly lost: LostCommits[];
  readonly ended: Error[];
  readonly outOfDate: () => number;
}

async function openNode(url: string, options: PostgresDatabaseOptions = {}): Promise<TestNode> {
  const lost: LostCommits[] = [];
  const ended: Error[] = [];
  let outOfDate = 0;
  const database = await PostgresDatabase.open(url, (error) => ended.push(error), {
    heartbeatMs: 50,
    maxWaitMs: 20_000,
    onLostCommits: (report) => lost.push(report),
    onOutOfDate: () => (outOfDate += 1),
    ...options,
  });
  onTestFinished(() => database.close());
  return { database, lost, ended, outOfDate: () => outOfDate };
}

const insert = ({ database }: TestNode, n: number) => database.run(rawSql(`INSERT INTO t VALUES (${n})`));
const numbers = async ({ database }: TestNode) =>
  (await database.all<{ n: number }>(rawSql("SELECT n FROM t ORDER BY n"))).map(({ n }) => n);

it("a synchronous standby that replaces the primary has every acknowledged write, and nothing is reported as lost", async () => {
  const { primary, standby, url } = await openPair();
  await makeSynchronous(primary);
  const node = await openNode(url);
  await node.database.run(rawSql("CREATE TABLE t (n BIGINT)"));
  for (let n = 1; n <= 20; n++) await insert(node, n);
  let moves = 0;
  node.database.onOtherServer(() => (moves += 1));
  await primary.stop("kill");
  // The standby is reachable and refuses writes; the node keeps looking for a primary.
  const waiting = insert(node, 21);
  await standby.promote();
  await waiting;
  expect(await numbers(node)).toEqual(Array.from({ length: 21 }, (_, i) => i + 1));
  expect(moves).toBe(1);
  expect([node.lost, node.ended, node.outOfDate()]).toEqual([[], [], 0]);
});

it("a standby that lacks acknowledged writes is noticed, and the node reads everything anew instead of exiting", async () => {
  const { primary, standby, url } = await openPair();
  const node = await openNode(url);
  await node.database.run(rawSql("CREATE TABLE t (n BIGINT)"));
  await insert(node, 1);
  await expect.poll(() => ask(standby, "SELECT 1 FROM pg_tables WHERE tablename = 't'")).toHaveLength(1);
  await expect.poll(() => ask(standby, "SELECT n FROM t")).toHaveLength(1);
  await standby.disconnect();
  for (let n = 2; n <= 5; n++) await insert(node, n);
  const before = node.database.session.identity.inc;
  let emptied = 0;
  node.database.onLoss(() => (emptied += 1));
  await primary.stop("kill");
  await standby.promote();
  await expect.poll(() => node.lost).toEqual([{ writes: 4, heartbeats: expect.any(Number) }]);
  await expect.poll(() => node.outOfDate()).toBe(1);
  expect(emptied).toBe(1);
  await insert(node, 6);
  expect([await numbers(node), node.ended]).toEqual([[1, 6], []]);
  expect(node.database.session.identity.inc).not.toBe(before);
});

it("a server that does not know the node any more has lost its commits, too", async () => {
  const { primary, standby, url } = await openPair();
  await standby.disconnect();
  // The node joins after the standby stopped receiving, and has not even had a heartbeat.
  const node = await openNode(url, { heartbeatMs: 3_600_000 });
  await primary.stop("kill");
  await standby.promote();
  await expect.poll(() => node.lost.length).toBe(1);
  await node.database.run(rawSql("CREATE TABLE t (n BIGINT)"));
  expect([node.lost.length, node.ended]).toEqual([1, []]);
});

it("a commit that did not wait for its standby is not acknowledged until the standby has it", async () => {
  const { primary, standby, url } = await openPair();
  const node = await openNode(url, { maxOutcomeWaitMs: 60_000, heartbeatMs: 3_600_000 });
  await node.database.run(rawSql("CREATE TABLE t (n BIGINT)"));
  await makeSynchronous(primary);
  await standby.freeze();
  let isDone = false;
  const write = insert(node, 1).then(() => (isDone = true));
  const waiting =
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'signalbox' AND wait_event = 'SyncRep'";
  const cancelWait = async () => {
    await expect.poll(() => ask(primary, waiting)).not.toEqual([]);
    await ask(primary, waiting.replace("SELECT pid", "SELECT pg_cancel_backend(pid)"));
  };
  await cancelWait();
  // The write is visible on the primary, and the read of its outcome waits for the standby in turn.
  await expect.poll(() => ask(primary, waiting)).not.toEqual([]);
  expect([await ask(primary, "SELECT n FROM t"), isDone]).toEqual([[{ n: "1" }], false]);
  await standby.thaw();
  await write;
  // It has flushed the write, and shows it soon.
  await expect.poll(() => ask(standby, "SELECT n FROM t")).toEqual([{ n: "1" }]);
});

it("a commit whose standby stays away is answered as unknown, and what is in memory is read anew when it turns out committed", async () => {
  const { primary, standby, url } = await openPair();
  const node = await openNode(url, { maxOutcomeWaitMs: 500 });
  await node.database.run(rawSql("CREATE TABLE t (n BIGINT)"));
  await makeSynchronous(primary);
  await standby.freeze();
  await expect(insert(node, 1)).rejects.toMatchObject({ id: "write_outcome_unknown" });
  expect(node.outOfDate()).toBe(0);
  await standby.thaw();
  await expect.poll(() => node.outOfDate()).toBe(1);
  expect([await numbers(node), node.lost, node.ended]).toEqual([[1], [], []]);
});

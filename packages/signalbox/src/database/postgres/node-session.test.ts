import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { Client } from "pg";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { rawSql } from "../../core/sql.ts";
import { endClient, Servers } from "../../engines/postgres-session/index.ts";
import { NodeConnections } from "./node-connections.ts";
import type { ClusterMember, NodeIdentity } from "../membership.ts";
import { JOIN_LOCK } from "./node-table.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "./postgres-database.ts";

let server: TestPostgres;
let admin: Client;
beforeAll(async () => {
  server = await openTestPostgres();
  admin = new Client({ connectionString: server.url });
  admin.on("error", () => undefined);
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await server.drop();
});

interface TestNode {
  readonly database: PostgresDatabase;
  readonly inc: () => string;
  readonly members: () => readonly ClusterMember[];
  readonly rejoined: NodeIdentity[];
  readonly lost: Error[];
  /** What it was told since the list was emptied. */
  readonly told: Set<"heartbeat" | "read" | "dead">;
}

interface TestNodeOptions extends PostgresDatabaseOptions {
  readonly secret?: string | null;
  readonly url?: string;
  readonly linkVersions?: { readonly min: number; readonly max: number };
}

async function openNode(name: string, options: TestNodeOptions = {}): Promise<TestNode> {
  let members: readonly ClusterMember[] = [];
  const rejoined: NodeIdentity[] = [];
  const lost: Error[] = [];
  const told: TestNode["told"] = new Set();
  const { secret = "one", url = server.url, linkVersions = { min: 1, max: 1 }, ...rest } = options;
  const database = await PostgresDatabase.open(url, (error) => lost.push(error), {
    nodeName: name,
    version: "1.2.3",
    heartbeatMs: 50,
    maxWaitMs: 2000,
    // Only a test about silence may lose a node, and no pause of the machine.
    deadAfterMs: 600_000,
    ...rest,
    ...(secret === null
      ? {}
      : {
          cluster: {
            secretCheck: secret,
            shared: [],
            linkVersions,
            openAddress: () => Promise.resolve({ host: "127.0.0.1", port: 1 }),
            onMembers: (seen) => (members = seen),
            onRejoined: (identity) => rejoined.push(identity),
            onSettingsVersion: () => told.add("heartbeat"),
            onSettingsRead: () => told.add("read"),
            onDead: () => told.add("dead"),
          },
        }),
  });
  onTestFinished(() => database.close());
  return { database, inc: () => database.session.identity.inc, members: () => members, rejoined, lost, told };
}

const namesOf = (node: TestNode) => node.members().map(({ name }) => name);

it("nodes see each other, and one that leaves is gone at once", async () => {
  const a = await openNode("a");
  const b = await openNode("b");
  await expect.poll(() => namesOf(a)).toEqual(["a", "b"]);
  await expect.poll(() => namesOf(b)).toEqual(["a", "b"]);
  expect(Number(b.inc())).toBeGreaterThan(Number(a.inc()));
  expect(a.database.session.identity.cluster).toBe(b.database.session.identity.cluster);
  await b.database.session.drain();
  await expect.poll(() => a.members().at(-1)?.state).toBe("draining");
  await b.database.close();
  await expect.poll(() => namesOf(a)).toEqual(["a"]);
});

it("both nodes write, transactions of one scope do not interleave over nodes", async () => {
  const a = await openNode("a");
  const b = await openNode("b");
  await a.database.run(rawSql("CREATE TABLE IF NOT EXISTS counter (n INTEGER)"));
  await a.database.run(rawSql("DELETE FROM counter"));
  await a.database.run(rawSql("INSERT INTO counter VALUES (0)"));
  const increment = ({ database }: TestNode) =>
    database.transaction(async (tx) => {
      const row = await tx.get<{ n: number }>(rawSql("SELECT n FROM counter"));
      await tx.run(rawSql(`UPDATE counter SET n = ${(row?.n ?? 0) + 1}`));
    });
  await Promise.all([a, b, a, b, a, b, a, b, a, b].map(increment));
  expect(await b.database.get(rawSql("SELECT n FROM counter"))).toEqual({ n: 10 });
});

it("concurrent transactions of one scope run at the same time on two nodes", async () => {
  const a = await openNode("a");
  const b = await openNode("b");
  const options = { scope: "many", isConcurrent: true };
  let isInside = false;
  const inside = Promise.withResolvers<void>();
  const first = a.database.transaction(async (tx) => {
    await tx.get(rawSql("SELECT 1"));
    isInside = true;
    await inside.promise;
  }, options);
  await expect.poll(() => isInside).toBe(true);
  await b.database.transaction((tx) => tx.get(rawSql("SELECT 1")), options);
  inside.resolve();
  await first;
});

it("repeats a concurrent transaction that waited for another node's rows, and that one for its rows", async () => {
  const a = await openNode("a");
  const b = await openNode("b");
  await a.database.run(rawSql("CREATE TABLE IF NOT EXISTS place (id INTEGER PRIMARY KEY, n INTEGER)"));
  await a.database.run(
    rawSql("INSERT INTO place VALUES (1, 0), (2, 0) ON CONFLICT (id) DO UPDATE SET n = 0"),
  );
  const both = { a: Promise.withResolvers<void>(), b: Promise.withResolvers<void>() };
  const change = ({ database }: TestNode, ids: readonly number[], own: "a" | "b", other: "a" | "b") =>
    database.transaction(
      async (tx) => {
        await tx.run(rawSql(`UPDATE place SET n = n + 1 WHERE id = ${ids[0]}`));
        both[own].resolve();
        await both[other].promise;
        await tx.run(rawSql(`UPDATE place SET n = n + 1 WHERE id = ${ids[1]}`));
      },
      { scope: "places", isConcurrent: true },
    );
  await Promise.all([change(a, [1, 2], "a", "b"), change(b, [2, 1], "b", "a")]);
  expect(await a.database.all(rawSql("SELECT n FROM place ORDER BY id"))).toEqual([{ n: 2 }, { n: 2 }]);
});

it("refuses a second process without a secret, and a node with another secret", async () => {
  await openNode("a");
  await expect(openNode("b", { secret: null })).rejects.toThrow(/set the same SIGNALBOX_CLUSTER_SECRET/);
  await expect(openNode("c", { secret: "two" })).rejects.toThrow(/SIGNALBOX_CLUSTER_SECRET differs/);
});

it("refuses a node that cannot talk to a running one, and accepts one that speaks both versions", async () => {
  await openNode("a");
  await expect(openNode("b", { linkVersions: { min: 2, max: 3 } })).rejects.toThrow(
    /speaks the link protocol 2 to 3, the running node "a" \(version 1.2.3\) 1 to 1; upgrade through/,
  );
  await openNode("c", { linkVersions: { min: 1, max: 2 } });
});

it("refuses a cluster node while a process uses the database alone", async () => {
  await openNode("a", { secret: null });
  await expect(openNode("b")).rejects.toThrow(/in use by another Signalbox process/);
});

it("a process that replaces a killed one waits until the killed one is dead", async () => {
  const killed = await openNode("killed", { secret: null, heartbeatMs: 3_600_000, deadAfterMs: 2500 });
  await expect.poll(() => killed.database.session.heartbeats.count).toBe(1);
  const next = await openNode("next", { secret: null });
  await next.database.run(rawSql("CREATE TABLE IF NOT EXISTS t4 (x INTEGER)"));
  await expect(killed.database.run(rawSql("CREATE TABLE t5 (x INTEGER)"))).rejects.toThrow();
  await expect.poll(() => killed.lost).toHaveLength(1);
});

it("the secret can be changed when no node is running", async () => {
  await (await openNode("a")).database.close();
  await openNode("b", { secret: "two" });
});

it("a node whose heartbeat is late is declared dead by the server's clock, and comes back with a new incarnation", async () => {
  const a = await openNode("a");
  const b = await openNode("b", { heartbeatMs: 3_600_000, deadAfterMs: 20_000 });
  const before = b.inc();
  await expect.poll(() => namesOf(a)).toEqual(["a", "b"]);
  await admin.query("UPDATE signalbox_node SET hb = hb - interval '61 seconds' WHERE name = 'b'");
  await expect.poll(() => namesOf(a)).toEqual(["a"]);
  // Its next write finds the declaration; the write itself has no effect, and is done by the new incarnation.
  await b.database.run(rawSql("CREATE TABLE IF NOT EXISTS t2 (x INTEGER)"));
  expect(b.rejoined).toHaveLength(1);
  expect(Number(b.inc())).toBeGreaterThan(Number(before));
  await expect.poll(() => namesOf(a)).toEqual(["a", "b"]);
});

it("a silent node is declared dead although PostgreSQL's clock was set back", async () => {
  const a = await openNode("a");
  const b = await openNode("b", { heartbeatMs: 3_600_000, deadAfterMs: 2500 });
  await expect.poll(() => b.database.session.heartbeats.count).toBe(1);
  // What its row looks like afterwards.
  await admin.query("UPDATE signalbox_node SET hb = hb + interval '1 hour' WHERE inc = $1", [b.inc()]);
  await expect.poll(() => namesOf(a)).toEqual(["a"]);
});

it("a process that was killed before PostgreSQL's clock was set back is replaced", async () => {
  const killed = await openNode("killed", { secret: null, heartbeatMs: 3_600_000, deadAfterMs: 2500 });
  await expect.poll(() => killed.database.session.heartbeats.count).toBe(1);
  await admin.query("UPDATE signalbox_node SET hb = hb + interval '1 hour' WHERE inc = $1", [killed.inc()]);
  await openNode("next", { secret: null });
});

it("a node may be silent for as long as it has asked for, whatever the others have", async () => {
  const a = await openNode("a");
  const b = await openNode("b", { heartbeatMs: 3_600_000, deadAfterMs: 60_000 });
  await expect.poll(() => namesOf(a)).toEqual(["a", "b"]);
  const age = (seconds: number) =>
    admin.query(`UPDATE signalbox_node SET hb = hb - interval '${seconds} seconds' WHERE inc = ${b.inc()}`);
  await age(30);
  const { count } = a.database.session.heartbeats;
  await expect.poll(() => a.database.session.heartbeats.count).toBeGreaterThan(count + 80);
  expect(namesOf(a)).toEqual(["a", "b"]);
});

it("a node that joins declares only those dead that were silent for long", async () => {
  const silent = { heartbeatMs: 3_600_000, deadAfterMs: 60_000 };
  const a = await openNode("a", silent);
  const b = await openNode("b", silent);
  const setAge = (node: TestNode, seconds: number) =>
    admin.query(
      `UPDATE signalbox_node SET hb = clock_timestamp() - interval '${seconds} seconds' WHERE inc = ${node.inc()}`,
    );
  for (const { database } of [a, b]) await expect.poll(() => database.session.heartbeats.count).toBe(1);
  await setAge(a, 100);
  await setAge(b, 250);
  await openNode("c", silent);
  const { rows } = await admin.query<{ name: string }>(
    "SELECT name FROM signalbox_node WHERE state <> 'dead' ORDER BY inc",
  );
  expect(rows.map(({ name }) => name)).toEqual(["a", "c"]);
});

it("a dead row is never revived", async () => {
  const a = await openNode("a");
  const before = a.inc();
  await admin.query("UPDATE signalbox_node SET state = 'dead' WHERE inc = $1", [before]);
  await expect.poll(() => a.rejoined.length).toBe(1);
  const { rows } = await admin.query<{ state: string }>("SELECT state FROM signalbox_node WHERE inc = $1", [
    before,
  ]);
  expect([rows[0]?.state, a.inc() === before]).toEqual(["dead", false]);
});

it("uses the next server of the connection string when the first cannot be reached", async () => {
  const { host } = new URL(server.url);
  const url = server.url.replace(host, `127.0.0.1:1,${host}`);
  const a = await openNode("a", { url });
  await expect.poll(() => namesOf(a)).toEqual(["a"]);
  await a.database.run(rawSql("CREATE TABLE IF NOT EXISTS t3 (x INTEGER)"));
});

/** Runs statements as a node does, and then does nothing more: a process that was stopped, or whose machine is gone. */
async function stopAfter(statements: string): Promise<void> {
  const client = await new NodeConnections(new Servers(server.url)).open();
  onTestFinished(() => endClient(client));
  await client.query(statements);
}

it("a node joins, and another one joins again, although a third one has stopped inside its join", async () => {
  const a = await openNode("a");
  const before = a.inc();
  await stopAfter(`BEGIN; SELECT pg_advisory_xact_lock(${JOIN_LOCK})`);
  await openNode("b");
  await stopAfter(`BEGIN; SELECT pg_advisory_xact_lock(${JOIN_LOCK})`);
  await admin.query("UPDATE signalbox_node SET state = 'dead' WHERE inc = $1", [before]);
  await expect.poll(() => a.rejoined.length).toBe(1);
});

it("writes of a scope go on although a node has stopped inside a transaction of the scope", async () => {
  const stopped = await openNode("stopped");
  // Less than the writes of the other node would have to wait for a transaction without a limit.
  const b = await openNode("b", { maxStatementMs: 20_000 });
  await b.database.run(rawSql("CREATE TABLE IF NOT EXISTS scoped (x INTEGER)"));
  const inside = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  let runs = 0;
  const write = stopped.database.transaction(async (tx) => {
    runs += 1;
    await tx.run(rawSql("INSERT INTO scoped VALUES (1)"));
    inside.resolve();
    await end.promise;
    await tx.run(rawSql("INSERT INTO scoped VALUES (2)"));
  });
  // Whatever becomes of the test, the process continues.
  onTestFinished(() => end.resolve());
  write.catch(() => undefined);
  await inside.promise;
  await b.database.run(rawSql("INSERT INTO scoped VALUES (3)"));
  // The process continues: what it wrote before is gone, and it runs the transaction again.
  end.resolve();
  await write;
  const rows = await b.database.all<{ x: number }>(rawSql("SELECT x FROM scoped ORDER BY x"));
  expect([rows.map(({ x }) => x), runs > 1]).toEqual([[1, 2, 3], true]);
});

it("a write that waits for a lock for too long is refused, and the node stays ready", async () => {
  const a = await openNode("a");
  await a.database.run(rawSql("CREATE TABLE IF NOT EXISTS locked (x INTEGER)"));
  await admin.query("BEGIN; LOCK TABLE locked IN ACCESS EXCLUSIVE MODE");
  const refusal = { id: "storage_unavailable", message: expect.stringContaining("holds a lock") };
  await expect(a.database.run(rawSql("INSERT INTO locked VALUES (1)"))).rejects.toMatchObject(refusal);
  await expect(a.database.all(rawSql("SELECT x FROM locked"))).rejects.toMatchObject(refusal);
  expect(a.database.problem).toBeNull();
  await admin.query("COMMIT");
  expect(await a.database.all(rawSql("SELECT x FROM locked"))).toEqual([]);
});

it("a transaction that may take long waits for its scope, and not for a table", async () => {
  const a = await openNode("a");
  const b = await openNode("b");
  const options = { scope: "changes", mayTakeLong: true };
  await a.database.run(rawSql("CREATE TABLE IF NOT EXISTS changed (x INTEGER)"));
  const inside = Promise.withResolvers<void>();
  const first = a.database.transaction(async (tx) => {
    await tx.get(rawSql("SELECT 1"));
    inside.resolve();
    // Longer than a statement waits for a lock.
    await tx.get(rawSql("SELECT pg_sleep(4)"));
  }, options);
  await inside.promise;
  const add = ({ database }: TestNode, column: string) =>
    database.transaction((tx) => tx.run(rawSql(`ALTER TABLE changed ADD COLUMN ${column} INTEGER`)), options);
  await add(b, "y");
  await first;
  await admin.query("BEGIN; SELECT x FROM changed");
  await expect(add(a, "z")).rejects.toMatchObject({
    id: "storage_unavailable",
    message: expect.stringContaining("holds a lock"),
  });
  await admin.query("COMMIT");
});

it("a node whose heartbeats find no room does not count as alive, and learns that it was declared dead", async () => {
  const a = await openNode("a");
  const before = a.inc();
  await expect.poll(() => a.told.has("heartbeat")).toBe(true);
  await admin.query(`CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'out of memory' USING ERRCODE = '53200'; END $$;
    CREATE TRIGGER no_room BEFORE UPDATE ON signalbox_node FOR EACH ROW WHEN (NEW.beats > OLD.beats AND OLD.inc = ${before})
      EXECUTE FUNCTION no_room()`);
  onTestFinished(async () => void (await admin.query("DROP FUNCTION no_room CASCADE")));
  // One may be under way.
  const { count } = a.database.session.heartbeats;
  await expect.poll(() => a.told.has("read")).toBe(true);
  a.told.clear();
  await expect.poll(() => a.told.has("read")).toBe(true);
  expect([...a.told]).toEqual(["read"]);
  expect(a.database.session.heartbeats.count).toBeLessThanOrEqual(count + 1);
  await admin.query("UPDATE signalbox_node SET state = 'dead' WHERE inc = $1", [before]);
  await expect.poll(() => a.rejoined.length).toBe(1);
  expect(a.told.has("dead")).toBe(true);
});

it("after a long stop of the server all nodes come back as they were", async () => {
  const a = await openNode("a", { heartbeatMs: 500, deadAfterMs: 2500 });
  const b = await openNode("b", { heartbeatMs: 500, deadAfterMs: 2500 });
  await expect.poll(() => namesOf(a)).toEqual(["a", "b"]);
  const before = [a.inc(), b.inc()];
  await server.stop("fast");
  await server.start();
  // As if the stop had taken longer than a node may be silent.
  const hand = new Client({ connectionString: server.url });
  await hand.connect();
  await hand.query("UPDATE signalbox_node SET hb = hb - interval '10 seconds'");
  const reconnected =
    "SELECT 1 FROM signalbox_node WHERE state = 'up' AND hb > clock_timestamp() - interval '2 seconds'";
  await expect.poll(async () => (await hand.query(reconnected)).rowCount).toBe(2);
  await hand.end();
  await admin.end();
  admin = new Client({ connectionString: server.url });
  admin.on("error", () => undefined);
  await admin.connect();
  expect([[a.inc(), b.inc()], a.rejoined, b.rejoined]).toEqual([before, [], []]);
});

it("declares nobody dead after a stall of the server, which has delayed the heartbeats of all", async () => {
  const a = await openNode("a", { heartbeatMs: 500, deadAfterMs: 2500 });
  const b = await openNode("b", { heartbeatMs: 500, deadAfterMs: 2500 });
  await expect.poll(() => namesOf(a)).toEqual(["a", "b"]);
  const before = [a.inc(), b.inc()];
  // Each has had its session long enough to declare the other dead.
  await expect
    .poll(() => Math.min(...[a, b].map(({ database }) => database.session.heartbeats.count)))
    .toBeGreaterThan(6);
  const counts = [a, b].map(({ database }) => database.session.heartbeats.count);
  await admin.query("BEGIN; LOCK TABLE signalbox_node IN ACCESS EXCLUSIVE MODE");
  // Longer than a node may be silent, and shorter than a heartbeat waits.
  await admin.query("SELECT pg_sleep(3.5)");
  await admin.query("COMMIT");
  for (const [i, { database }] of [a, b].entries())
    await expect.poll(() => database.session.heartbeats.count - (counts[i] ?? 0)).toBeGreaterThan(4);
  expect([[a.inc(), b.inc()], a.rejoined, b.rejoined]).toEqual([before, [], []]);
});

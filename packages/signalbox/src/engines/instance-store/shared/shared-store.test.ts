/** Owners, and what happens to them when PostgreSQL or another node interferes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { commitRow, readRows, TEST_SCHEMA, writeRow } from "../instance-disks-fixture.ts";
import { History } from "./history.ts";
import { type Fence, InstanceElsewhereError, InstanceFencedError } from "../index.ts";
import type { SharedStore, SharedStoreOptions } from "./shared-store.ts";
import { type TestNode, useSharedTables } from "./shared-store-fixture.ts";

const tables = useSharedTables();
let folder = "";
let opened: SharedStore[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-shared-"));
  opened = [];
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const store of opened) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Started {
  readonly store: SharedStore;
  readonly node: TestNode;
  readonly fences: Fence[];
}

async function start(more: Partial<SharedStoreOptions> = {}): Promise<Started> {
  const options = { baseSchema: TEST_SCHEMA, reservedNames: ["_base"], onFailure: fail, onStall: fail };
  const disk = join(folder, String(opened.length));
  const started = await tables.start({ folder: disk, ...options }, more);
  opened.push(started.store);
  const fences: Fence[] = [];
  started.store.ownership.onFenced((fence) => fences.push(fence));
  return { ...started, fences };
}

/** Connections of the engine that wait for a lock or for a standby; a disk or a moment of contention does not count. */
const waiting = () =>
  tables.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE application_name = 'signalbox instances' AND state = 'active'
       AND (wait_event_type = 'Lock' OR wait_event = 'SyncRep')`,
  );

describe("an instance of a dead node", () => {
  it("is taken over; the former owner can neither write nor acknowledge, and closes without a word", async () => {
    const [one, two] = [await start(), await start()];
    const former = await one.store.open("x");
    await writeRow(former, 1);
    const database = await two.store.open("x");
    expect(readRows(database)).toEqual([1]);
    commitRow(former, 2);
    const refused = former.sync();
    await expect(refused).rejects.toBeInstanceOf(InstanceFencedError);
    await expect(refused).rejects.toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    expect(one.fences).toEqual([{ name: "x", epoch: 1, reason: "taken" }]);
    expect(() => former.begin()).toThrow("moved to another node");
    await former.close();
    await writeRow(database, 3);
    await database.close();
    const again = await one.store.open("x");
    expect(readRows(again)).toEqual([1, 3]);
    await again.close();
    expect(one.store.ownership.figures).toMatchObject({ refusals: 1, takeOvers: 1 });
  });

  it("is destroyed by another node; a late record finds nothing, and a new instance of the name is another one", async () => {
    const [one, two] = [await start(), await start()];
    const former = await one.store.open("x");
    await writeRow(former, 1);
    await two.store.destroy("x");
    const successor = await two.store.open("x");
    expect([successor.isNew, readRows(successor)]).toEqual([true, []]);
    commitRow(former, 2);
    await expect(former.sync()).rejects.toBeInstanceOf(InstanceFencedError);
    await former.close();
    await successor.close();
    const [row] = await tables.query<{ n: number }>("SELECT count(DISTINCT agent)::int AS n FROM agent_log");
    expect(row?.n).toBe(1);
  });
});

it("a former owner that has not noticed the take-over destroys the instance all the same", async () => {
  const [one, two] = [await start(), await start()];
  for (const { store } of [one, two]) {
    const database = await store.open("x");
    await writeRow(database, 1);
    await database.close();
  }
  await one.store.destroy("x");
  expect(await tables.query("SELECT 1 FROM agent_owner")).toEqual([]);
  expect(await tables.query("SELECT 1 FROM agent_log")).toEqual([]);
});

describe("an instance of a living node", () => {
  it("is left to it, unless the claim is forced", async () => {
    const [one, two] = [await start(), await start()];
    tables.living.add(one.node.self);
    const former = await one.store.open("x");
    await writeRow(former, 1);
    const refused = two.store.open("x");
    await expect(refused).rejects.toBeInstanceOf(InstanceElsewhereError);
    await expect(refused).rejects.toMatchObject({ node: one.node.self, status: 503 });
    expect(two.store.ownership.peek("x")).toEqual({ node: one.node.self });
    expect(await two.store.ownership.find(["x", "unknown"])).toEqual([
      { node: one.node.self },
      { node: null },
    ]);
    expect(await two.store.ownership.claim(["x"], { isForced: true })).toEqual([{ kind: "held", epoch: 2 }]);
    await former.close();
  });

  it("is handed to a named node, which nobody else is then", async () => {
    const [one, two, three] = [await start(), await start(), await start()];
    for (const { node } of [one, two, three]) tables.living.add(node.self);
    const names = ["x", "y"];
    for (const name of names) {
      const database = await one.store.open(name);
      await writeRow(database, 1);
      await expect(one.store.ownership.release([name])).rejects.toThrow("is open");
      await database.close();
    }
    await one.store.ownership.release(names, two.node.self);
    expect([...one.store.ownership.held]).toEqual([]);
    expect(one.store.ownership.peek("x")).toEqual({ node: two.node.self });
    await expect(three.store.open("x")).rejects.toMatchObject({ node: two.node.self });
    const database = await two.store.open("x");
    expect(readRows(database)).toEqual([1]);
    await database.close();
    await two.store.ownership.release(["x"]);
    expect(await three.store.ownership.claim(names)).toEqual([
      { kind: "held", epoch: 3 },
      { kind: "elsewhere", node: two.node.self },
    ]);
  });

  it("is confirmed by PostgreSQL if the lease is old", async () => {
    const [one, two] = [await start(), await start()];
    const database = await one.store.open("x");
    await writeRow(database, 1);
    expect(one.store.ownership.confirm("x")).toBeNull();
    one.node.isLeaseFresh = false;
    await expect(one.store.ownership.confirm("x")).resolves.toBeUndefined();
    await two.store.ownership.claim(["x"]);
    await expect(one.store.ownership.confirm("x")).rejects.toBeInstanceOf(InstanceFencedError);
    expect(one.fences).toMatchObject([{ reason: "taken" }]);
    await database.close();
  });

  it("is given up if the node gets another incarnation", async () => {
    const { store, node, fences } = await start();
    const database = await store.open("x");
    await writeRow(database, 1);
    node.self = "1000";
    store.ownership.rejoined();
    await expect(database.sync()).rejects.toBeInstanceOf(InstanceFencedError);
    await database.close();
    expect(fences).toMatchObject([{ name: "x", reason: "rejoined" }]);
    const again = await store.open("x");
    expect(readRows(again)).toEqual([1]);
    await again.close();
  });

  it("leaves no commit to the next database that uses its WAL file", async () => {
    const { store, node } = await start();
    for (const [name, row] of [
      ["x", 1],
      ["y", 10],
    ] as const) {
      const database = await store.open(name);
      await writeRow(database, row);
      await database.close();
    }
    const fenced = await store.open("x");
    commitRow(fenced, 2);
    node.self = "1000";
    store.ownership.rejoined();
    await fenced.close();
    const other = await store.open("y");
    expect(readRows(other)).toEqual([10]);
    await other.close();
  });
});

describe("a record whose outcome is unknown", () => {
  it("is acknowledged if PostgreSQL has it", async () => {
    const { store, fences } = await start();
    const database = await store.open("x");
    await writeRow(database, 1);
    const { append } = History.prototype;
    vi.spyOn(History.prototype, "append").mockImplementationOnce(async function (this: History, ...args) {
      await append.apply(this, args);
      throw new Error("Connection terminated unexpectedly");
    });
    await writeRow(database, 2);
    await writeRow(database, 3);
    expect([fences, store.ownership.figures.unknownOutcomes]).toEqual([[], 1]);
    await database.close();
    const [row] = await tables.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM agent_log WHERE kind <> 'c'",
    );
    expect(row?.n).toBe(3);
  });

  it("is not sent again if PostgreSQL does not have it: the instance is fenced", async () => {
    const { store, fences } = await start();
    const database = await store.open("x");
    await writeRow(database, 1);
    const blocker = new Client({ connectionString: tables.postgres.url });
    await blocker.connect();
    await blocker.query("BEGIN; LOCK TABLE agent_log IN ACCESS EXCLUSIVE MODE");
    commitRow(database, 2);
    const unknown = database.sync();
    unknown.catch(() => undefined);
    await expect.poll(async () => (await waiting()).length).toBe(1);
    for (const { pid } of await waiting()) await blocker.query("SELECT pg_terminate_backend($1)", [pid]);
    await blocker.query("COMMIT");
    await blocker.end();
    await expect(unknown).rejects.toBeInstanceOf(InstanceFencedError);
    expect(fences).toMatchObject([{ name: "x", reason: "unknown" }]);
    await database.close();
    const again = await store.open("x");
    expect(readRows(again)).toEqual([1]);
    await writeRow(again, 3);
    await again.close();
  });
});

describe("PostgreSQL", () => {
  it("that does not wait for its standby has not taken the record", async () => {
    const { store } = await start();
    const database = await store.open("x");
    await writeRow(database, 1);
    await tables.query("ALTER SYSTEM SET synchronous_standby_names = 'missing'");
    await tables.query("SELECT pg_reload_conf()");
    onTestFinished(async () => {
      await tables.query("ALTER SYSTEM RESET synchronous_standby_names");
      await tables.query("SELECT pg_reload_conf()");
    });
    let isSynced = true;
    let synced: Promise<unknown> = Promise.resolve();
    // Until the server has read the setting, commits do not wait.
    for (let value = 2; isSynced; value++) {
      isSynced = false;
      commitRow(database, value);
      synced = database.sync().then(() => (isSynced = true));
      await expect.poll(async () => isSynced || (await waiting()).length === 1).toBe(true);
    }
    const [append] = await waiting();
    // The commit returns with a warning, and a second one waits for the standby.
    await tables.query("SELECT pg_cancel_backend($1)", [append?.pid]);
    await expect
      .poll(() =>
        tables.query(
          "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'UPDATE agent_store%' AND wait_event = 'SyncRep'",
        ),
      )
      .toHaveLength(1);
    expect(isSynced).toBe(false);
    await tables.query("ALTER SYSTEM RESET synchronous_standby_names");
    await tables.query("SELECT pg_reload_conf()");
    await synced;
    await database.close();
  });

  it("that has lost a record is noticed after a reconnect, and the instance starts from what is left", async () => {
    const { store, fences } = await start();
    const database = await store.open("x");
    for (const value of [1, 2]) await writeRow(database, value);
    await tables.query("DELETE FROM agent_log WHERE seq = 3");
    await tables.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'signalbox instances'",
    );
    commitRow(database, 3);
    await expect(database.sync()).rejects.toBeInstanceOf(InstanceFencedError);
    expect(fences).toMatchObject([{ reason: "lost" }]);
    expect(store.ownership.figures.lostRecords).toBe(1);
    await database.close();
    const again = await store.open("x");
    expect(readRows(again)).toEqual([1]);
    await again.close();
  });

  it("that is stopped delays a write, and lets no instance wake without a lease", async () => {
    const { store, node, fences } = await start();
    const database = await store.open("x");
    await writeRow(database, 1);
    const asleep = await store.open("y");
    await writeRow(asleep, 1);
    await asleep.close();
    await tables.postgres.stop("fast");
    commitRow(database, 2);
    const synced = database.sync();
    node.isLeaseFresh = false;
    await expect(store.open("y")).rejects.toMatchObject({ id: "storage_unavailable", status: 503 });
    await tables.postgres.start();
    await synced;
    const woken = await store.open("y");
    expect([readRows(woken), readRows(database), fences]).toEqual([[1], [1, 2], []]);
    await woken.close();
    await database.close();
  });

  it("may be several: new instances are spread, and an added one moves nothing", async () => {
    await tables.query("DROP DATABASE IF EXISTS second WITH (FORCE)");
    await tables.query("CREATE DATABASE second");
    const url = tables.postgres.url;
    const second = url.replace(/\/postgres$/, "/second");
    const names = Array.from({ length: 12 }, (_, i) => `spread-${i}`);
    const write = async (store: SharedStore, name: string, value: number) => {
      const database = await store.open(name);
      await writeRow(database, value);
      const rows = readRows(database);
      await database.close();
      return rows;
    };
    const one = await start();
    for (const name of names.slice(0, 4)) await write(one.store, name, 1);
    const both = await start({ stores: [url, second] });
    for (const name of names) await write(both.store, name, 2);
    const [first] = await tables.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM agent_owner WHERE store = 0",
    );
    expect(first?.n).toBeGreaterThan(4);
    expect(first?.n).toBeLessThan(12);
    const other = await start({ stores: [url, second] });
    for (const name of names.slice(0, 4)) expect(await write(other.store, name, 3)).toEqual([1, 2, 3]);
    for (const name of names.slice(4)) expect(await write(other.store, name, 3)).toEqual([2, 3]);
    const alone = await start();
    const refusals = await Promise.all(
      names.map((name) =>
        alone.store
          .open(name)
          .then((database) => database.close())
          .catch(String),
      ),
    );
    expect(
      refusals.filter((refusal) => refusal?.includes("not among the configured stores") === true),
    ).toHaveLength(12 - (first?.n ?? 0));
    await expect(start({ stores: [url, url] })).rejects.toThrow("the same database");
    for (const store of opened.splice(0)) await store.close();
    await tables.query("DROP DATABASE second WITH (FORCE)");
  });
});

function fail(error: Error): never {
  throw error;
}

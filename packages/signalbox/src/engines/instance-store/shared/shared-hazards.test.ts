/** Races and half-failures of the shared engine: another node at the same moment, one of several stores, a node that stops in the middle. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openTestPostgres } from "../../../../../../test/support/test-postgres.ts";
import { readRows, TEST_SCHEMA, writeRow } from "../instance-disks-fixture.ts";
import { InstancePaths } from "../instance-path.ts";
import type { Fence } from "../index.ts";
import { History } from "./history.ts";
import type { SharedStore, SharedStoreOptions } from "./shared-store.ts";
import { type TestNode, useSharedTables } from "./shared-store-fixture.ts";
import { KINDS, STATEMENTS } from "./statements.ts";
import { StoreConnections } from "./store-connections.ts";

const tables = useSharedTables();
let folder = "";
let opened: SharedStore[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-hazards-"));
  opened = [];
});
afterEach(async () => {
  for (const store of opened) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const fail = (error: Error): never => {
  throw error;
};

async function start(
  more: Partial<SharedStoreOptions> = {},
): Promise<{ store: SharedStore; node: TestNode; fences: Fence[] }> {
  const disk = join(folder, String(opened.length));
  const options = { baseSchema: TEST_SCHEMA, reservedNames: ["_base"], onFailure: fail, onStall: fail };
  const { store, node } = await tables.start({ folder: disk, ...options }, more);
  opened.push(store);
  const fences: Fence[] = [];
  store.ownership.onFenced((fence) => fences.push(fence));
  return { store, node, fences };
}

async function idOf(name: string): Promise<number> {
  const { key } = new InstancePaths(folder).find(name);
  const [row] = await tables.query<{ id: number }>(
    "SELECT id::float8 AS id FROM agent_owner WHERE key = $1",
    [key],
  );
  return row?.id ?? 0;
}

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: tables.postgres.url });
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.end().catch(() => undefined));
  return client;
}

describe("a node that creates an instance", () => {
  it("at the same moment as another one finds the other's row", async () => {
    const { store } = await start();
    const other = await connect();
    const { key } = new InstancePaths(folder).find("x");
    await other.query("BEGIN");
    const { rows } = await other.query<{ id: number }>(
      "INSERT INTO agent_owner (key, store, owner, epoch, format, snap_seq) VALUES ($1, 0, 999, 1, 1, 0) RETURNING id",
      [key],
    );
    await other.query("INSERT INTO agent_log (agent, seq, epoch, kind, data) VALUES ($1, 1, 1, 'c', '')", [
      rows[0]?.id,
    ]);
    const opening = Promise.all([store.open("x"), store.open("y")]);
    await expect
      .poll(() =>
        tables.query(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH made%'",
        ),
      )
      .toHaveLength(1);
    await other.query("COMMIT");
    for (const database of await opening) {
      await writeRow(database, 1);
      expect(readRows(database)).toEqual([1]);
      await database.close();
    }
    // The row of node 999, which is dead.
    expect([store.ownership.epochOf("x"), store.ownership.epochOf("y")]).toEqual([2, 1]);
  });

  it("gives it an id that no other instance gets, even if the server counts from the beginning again", async () => {
    const history = new History(tables.postgres.url);
    const ids: number[] = [];
    for (const name of ["a", "b"]) {
      await tables.query("ALTER SEQUENCE agent_number RESTART");
      const [row] = await history.locate([Buffer.from(name)], [0], "1", 1);
      ids.push(row?.id ?? 0);
    }
    await history.close();
    expect(ids.every((id) => Number.isSafeInteger(id) && id > 0)).toBe(true);
    expect(ids[0]).not.toBe(ids[1]);
  });
});

describe("a node that stops in the middle", () => {
  it("of a snapshot keeps no lock, and loses the instance", async () => {
    const [one, two] = [await start(), await start()];
    const database = await one.store.open("x");
    await writeRow(database, 1);
    await database.close();
    const [row] = await tables.query<{ id: number }>("SELECT id::float8 AS id FROM agent_owner");
    const paused = new History(tables.postgres.url);
    const { client } = await paused.connections.open();
    await client.query("BEGIN");
    expect((await client.query(STATEMENTS.beginSnapshot, [row?.id, 1, one.node.self, 2])).rowCount).toBe(1);
    const taken = await two.store.open("x");
    expect(readRows(taken)).toEqual([1]);
    await taken.close();
    await expect(client.query("COMMIT")).rejects.toThrow();
    await paused.close();
  });
});

describe("a node whose instance was taken while it restored it", () => {
  it("asks who has the instance, the next time", async () => {
    const [one, two] = [await start(), await start()];
    const database = await two.store.open("x");
    await writeRow(database, 1);
    await database.close();
    await two.store.ownership.release(["x"]);
    await one.store.ownership.claim(["x"]);
    await two.store.ownership.claim(["x"], { isForced: true });
    await expect(one.store.open("x")).rejects.toThrow("has moved");
    expect(one.store.ownership.isHeld("x")).toBe(false);
    expect(one.fences).toHaveLength(1);
  });
});

describe("one of several stores", () => {
  it("that cannot be reached delays only its own instances", async () => {
    await tables.query("DROP DATABASE IF EXISTS other WITH (FORCE)");
    await tables.query("CREATE DATABASE other");
    const { url } = tables.postgres;
    const { store } = await start({ stores: [url, url.replace(/\/postgres$/, "/other")] });
    const names = Array.from({ length: 12 }, (_, i) => `spread-${i}`);
    for (const name of names) {
      const database = await store.open(name);
      await writeRow(database, 1);
      await database.close();
    }
    const here = names.filter((name) => new InstancePaths(folder).find(name).key.readUInt32BE(0) % 2 === 0);
    expect(here.length).toBeGreaterThan(0);
    expect(here.length).toBeLessThan(names.length);
    await tables.query("ALTER DATABASE other ALLOW_CONNECTIONS false");
    await tables.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'other'");
    // A node that starts now waits for it.
    const starting = start({ stores: [url, url.replace(/\/postgres$/, "/other")] });
    // As another node would: nothing is held.
    store.ownership.rejoined();
    const outcomes = await Promise.allSettled(names.map((name) => store.open(name)));
    for (const [i, outcome] of outcomes.entries()) {
      expect([names[i], outcome.status]).toEqual([
        names[i],
        here.includes(names[i] ?? "") ? "fulfilled" : "rejected",
      ]);
      if (outcome.status === "rejected")
        expect(outcome.reason).toMatchObject({ id: "storage_unavailable", status: 503 });
      else await outcome.value.close();
    }
    await tables.query("ALTER DATABASE other ALLOW_CONNECTIONS true");
    await starting;
    for (const name of names) {
      const database = await store.open(name);
      expect(readRows(database)).toEqual([1]);
      await database.close();
    }
    for (const one of opened.splice(0)) await one.close();
    await tables.query("DROP DATABASE other WITH (FORCE)");
  });
});

describe("a server that has lost records", () => {
  it("costs a sleeping instance its local file", async () => {
    const { store, fences } = await start();
    const asleep = await store.open("asleep");
    for (const value of [1, 2]) await writeRow(asleep, value);
    await asleep.close();
    const awake = await store.open("awake");
    await writeRow(awake, 1);
    await tables.query("DELETE FROM agent_log WHERE seq = 3");
    await tables.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'signalbox instances'",
    );
    // A record that meets the end of the session costs its instance the memory.
    await writeRow(awake, 2).catch(() => undefined);
    const next = await store.open("next");
    await writeRow(next, 1);
    expect(fences).toContainEqual({ name: "asleep", epoch: 1, reason: "lost" });
    const again = await store.open("asleep");
    expect(readRows(again)).toEqual([1]);
    for (const database of [again, awake, next]) await database.close();
  });
});

describe("a node that was declared dead after its server lost records", () => {
  it("counts what is gone, also of instances that another node has claimed meanwhile, and nothing else", async () => {
    const [one, two] = [await start(), await start()];
    for (const name of ["whole", "cut", "taken"]) {
      const database = await one.store.open(name);
      for (const value of [1, 2, 3]) await writeRow(database, value);
      await database.close();
    }
    // Each has a claim at 1 and three records.
    await tables.query("DELETE FROM agent_log WHERE agent = $1 AND seq > 3", [await idOf("cut")]);
    await tables.query("DELETE FROM agent_log WHERE agent = $1 AND seq > 2", [await idOf("taken")]);
    const taken = await two.store.open("taken");
    await writeRow(taken, 4);
    await taken.close();
    one.store.ownership.rejoined();
    await expect.poll(() => one.store.ownership.figures.lostRecords).toBe(3);
    expect(one.fences.map(({ reason }) => reason)).toEqual(["rejoined", "rejoined", "rejoined"]);
  });
});

describe("the connections of a store", () => {
  it("lead to one server: when a standby has replaced it, those to the former primary are not used any more", async () => {
    const primary = await openTestPostgres();
    onTestFinished(() => primary.drop());
    const standby = await primary.openStandby();
    onTestFinished(() => standby.drop());
    const { host } = new URL(primary.url);
    const connections = new StoreConnections(
      primary.url.replace(host, `${host},${new URL(standby.url).host}`),
    );
    onTestFinished(() => connections.close());
    const [lane, other] = [await connections.open(), await connections.open()];
    expect([lane.isBroken, other.isBroken]).toEqual([false, false]);
    // The former primary lives on for those who are connected.
    await standby.promote();
    await lane.client.query("UPDATE pg_database SET datallowconn = false WHERE datname = current_database()");
    await lane.client.query("SELECT 1");
    const next = await connections.open();
    expect([lane.isBroken, other.isBroken, next.isBroken]).toEqual([true, true, false]);
  });
});

describe("the records of an instance", () => {
  it("are read in pieces, by number and by size", async () => {
    const history = new History(tables.postgres.url);
    onTestFinished(() => history.close());
    const [row] = await history.locate([Buffer.from("x")], [0], "1", 1);
    const id = row?.id ?? 0;
    const connection = await history.connections.open();
    for (let seq = 2; seq <= 6; seq++) {
      const data = Buffer.alloc(1000);
      await history.append(connection, [{ id, seq, epoch: 1, node: "1", kind: KINDS.pages, data }], data);
    }
    const read = async (after: number, count: number, bytes: number) =>
      (await history.readRecords(id, after, 6, { count, bytes })).map(({ seq }) => seq);
    expect(await read(0, 100, 1_000_000)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await read(1, 2, 1_000_000)).toEqual([2, 3]);
    expect(await read(1, 100, 1)).toEqual([2]);
    expect(await read(1, 100, 2000)).toEqual([2, 3]);
    expect(await read(1, 100, 2001)).toEqual([2, 3, 4]);
  });
});

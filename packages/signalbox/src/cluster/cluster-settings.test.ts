/** Two nodes on one database, whose messages the test delivers, delays or loses. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rawSql, sql, sqlList } from "../core/sql.ts";
import type { Database, Queryable } from "../database/database.ts";
import { findToDelete } from "../database/shared-settings.ts";
import { SqliteDatabase } from "../database/sqlite/sqlite-database.ts";
import type { CallService, ClusterNode } from "./cluster-node.ts";
import { ClusterSettings } from "./cluster-settings.ts";
import { Lease } from "./lease.ts";

let folder: string;
let database: Database;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-settings-"));
  database = await SqliteDatabase.open(join(folder, "test.db"), () => undefined);
  await database.run(
    rawSql("CREATE TABLE signalbox_settings (id INTEGER PRIMARY KEY, version BIGINT NOT NULL)"),
  );
  await database.run(rawSql("INSERT INTO signalbox_settings VALUES (1, 0)"));
  await database.run(rawSql("CREATE TABLE signalbox_settings_change (version BIGINT, kind TEXT, key TEXT)"));
  await database.run(rawSql("CREATE TABLE item (id TEXT PRIMARY KEY, value TEXT NOT NULL)"));
});
afterEach(async () => {
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

interface TestNode {
  readonly settings: ClusterSettings;
  readonly lease: Lease;
  readonly items: Map<string, string>;
  /** How the rows were read: the keys, or null for all. */
  readonly reads: (readonly string[] | null)[];
  readonly errors: unknown[];
  set(id: string, value: string): Promise<void>;
  delete(id: string): Promise<void>;
  /** What another node sends. */
  receive(version: number): Promise<unknown>;
  /** Called by a write with its version. */
  tell: (version: number) => Promise<unknown>;
  /** Called before rows are read. */
  beforeRead: () => Promise<void>;
}

async function openNode(): Promise<TestNode> {
  let service: CallService | undefined;
  const cluster = {
    serve: (_name: string, handler: CallService) => (service = handler),
    tellAll: (_name: string, payload: Buffer) => node.tell(Number(payload.toString())),
  };
  const lease = new Lease({ maxStaleMs: 30_000, deadAfterMs: 2500 });
  const errors: unknown[] = [];
  const settings = new ClusterSettings({
    cluster: cluster as unknown as ClusterNode,
    deadAfterMs: 2500,
    onError: (error) => errors.push(error),
  });
  const items = new Map<string, string>();
  const reads: (readonly string[] | null)[] = [];
  const node: TestNode = {
    settings,
    lease,
    items,
    reads,
    errors,
    set: (id, value) =>
      settings.write("token", async (tx, changed) => {
        await tx.run(
          sql`INSERT INTO item VALUES (${id}, ${value}) ON CONFLICT (id) DO UPDATE SET value = excluded.value`,
        );
        changed(id);
      }),
    delete: (id) =>
      settings.write("token", async (tx, changed) => {
        await tx.run(sql`DELETE FROM item WHERE id = ${id}`);
        changed(id);
      }),
    receive: (version) => Promise.resolve(service?.(Buffer.from(String(version)), "other")),
    tell: () => Promise.resolve(),
    beforeRead: () => Promise.resolve(),
  };
  settings.register("token", {
    async reload(keys) {
      reads.push(keys);
      const selected = keys === null ? sql`` : sql`WHERE id IN (${sqlList(keys)})`;
      const rows = await database.all<{ id: string; value: string }>(sql`SELECT * FROM item ${selected}`);
      await node.beforeRead();
      for (const id of keys ?? [...items.keys()]) items.delete(id);
      for (const { id, value } of rows) items.set(id, value);
    },
  });
  await settings.open(database);
  await settings.load("token");
  reads.length = 0;
  return node;
}

async function openPair(): Promise<[TestNode, TestNode]> {
  const [a, b] = [await openNode(), await openNode()];
  a.tell = (version) => b.receive(version);
  b.tell = (version) => a.receive(version);
  return [a, b];
}

/** A heartbeat that returns the current version. */
async function beat(node: TestNode): Promise<void> {
  const row = await database.get<{ version: number }>(sql`SELECT version FROM signalbox_settings`);
  const sentAt = performance.now();
  node.settings.onVersion(row?.version ?? 0, () => node.lease.renew(sentAt));
}

it("a write is in the memory of both nodes when it is answered, and reads only its row", async () => {
  const [a, b] = await openPair();
  await a.set("x", "1");
  expect([a.items.get("x"), b.items.get("x")]).toEqual(["1", "1"]);
  await b.delete("x");
  expect([a.items.size, b.items.size]).toEqual([0, 0]);
  expect([...a.reads, ...b.reads]).toEqual([["x"], ["x"], ["x"], ["x"]]);
});

it("a write that throws changes nothing, and one without a change reads nothing", async () => {
  const [a, b] = await openPair();
  const failed = a.settings.write("token", async (tx, changed) => {
    await tx.run(sql`INSERT INTO item VALUES (${"x"}, ${"1"})`);
    changed("x");
    throw new Error("refused");
  });
  await expect(failed).rejects.toThrow("refused");
  await a.settings.write("token", () => Promise.resolve());
  expect([a.reads, b.reads]).toEqual([[], []]);
});

describe("after a node has died between its commit and its messages", () => {
  const missing = () => new SignalboxError("not_found");
  const found = (id: string) => async (tx: Queryable) => {
    if ((await tx.get(sql`SELECT id FROM item WHERE id = ${id}`)) === undefined) throw missing();
  };

  async function openAfterLoss(): Promise<[TestNode, TestNode]> {
    const [a, b] = await openPair();
    const dying = await openNode();
    dying.tell = () => Promise.reject(new Error("killed"));
    await a.set("x", "1");
    await expect(dying.delete("x")).rejects.toMatchObject({ id: "write_outcome_unknown" });
    expect(b.items.get("x")).toBe("1");
    return [a, b];
  }

  it("a write that finds nothing to do is answered when all nodes have read what it has seen", async () => {
    const [a, b] = await openAfterLoss();
    await a.settings.write("token", () => Promise.resolve());
    expect([a.items.size, b.items.size]).toEqual([0, 0]);
  });

  it("so is one that is refused", async () => {
    const [a, b] = await openAfterLoss();
    await expect(a.settings.write("token", found("x"))).rejects.toMatchObject({ id: "not_found" });
    expect([a.items.size, b.items.size]).toEqual([0, 0]);
  });

  it("a deletion that is refused by memory confirms what was deleted", async () => {
    const [a, b] = await openAfterLoss();
    await beat(a);
    await expect.poll(() => a.items.size).toBe(0);
    const find = () => {
      throw missing();
    };
    await expect(findToDelete(a.settings, find)).rejects.toMatchObject({ id: "not_found" });
    expect(b.items.size).toBe(0);
  });

  it("the outcome is unknown if the others cannot be told; once they have been, nobody is told again", async () => {
    const [a] = await openAfterLoss();
    a.tell = () => Promise.reject(new Error("unreachable"));
    await expect(a.settings.write("token", found("x"))).rejects.toMatchObject({
      id: "write_outcome_unknown",
    });
    const told: number[] = [];
    a.tell = async (version) => told.push(version);
    for (let i = 0; i < 3; i++)
      await expect(a.settings.write("token", found("x"))).rejects.toMatchObject({ id: "not_found" });
    expect(told).toEqual([2]);
    // Another server may have other versions.
    a.settings.invalidate();
    await a.settings.write("token", () => Promise.resolve());
    expect(told).toEqual([2, 2]);
  });

  it("a failure of the database is reported as it is", async () => {
    const [a] = await openAfterLoss();
    a.tell = () => Promise.reject(new Error("must not be told"));
    const failing = a.settings.write("token", () => {
      throw new SignalboxError("storage_unavailable");
    });
    await expect(failing).rejects.toMatchObject({ id: "storage_unavailable" });
  });
});

it("a lost message costs one heartbeat, and no lease is renewed before the rows are read", async () => {
  const [a, b] = await openPair();
  a.tell = () => Promise.resolve();
  await a.set("x", "1");
  const gate = Promise.withResolvers<void>();
  b.beforeRead = () => gate.promise;
  await beat(b);
  expect([b.items.get("x"), b.lease.isFresh]).toEqual([undefined, false]);
  gate.resolve();
  await expect.poll(() => [b.items.get("x"), b.lease.isFresh]).toEqual(["1", true]);
});

it("an answer to a heartbeat that a message has overtaken renews the lease, and reads nothing", async () => {
  const [a, b] = await openPair();
  await a.set("x", "1");
  b.reads.length = 0;
  const sentAt = performance.now();
  b.settings.onVersion(0, () => b.lease.renew(sentAt));
  expect(b.lease.isFresh).toBe(true);
  await b.receive(1);
  expect(b.reads).toEqual([]);
});

it("an older row never replaces a newer one", async () => {
  const [a, b] = await openPair();
  const gate = Promise.withResolvers<void>();
  // The first read has its rows before the second write, and applies them late.
  a.beforeRead = () => gate.promise;
  const first = a.set("x", "1");
  await expect.poll(() => a.reads.length).toBe(1);
  const second = b.set("x", "2");
  await expect.poll(() => b.items.get("x")).toBe("2");
  gate.resolve();
  await Promise.all([first, second]);
  expect([a.items.get("x"), b.items.get("x")]).toEqual(["2", "2"]);
});

it("reads everything after it was declared dead, also if that happens during a read", async () => {
  const [a, b] = await openPair();
  await a.set("x", "1");
  b.reads.length = 0;
  b.beforeRead = () => {
    b.beforeRead = () => Promise.resolve();
    b.settings.invalidate();
    return Promise.resolve();
  };
  await a.set("y", "1");
  expect(b.reads).toEqual([["y"], null]);
  b.settings.invalidate();
  await beat(b);
  await expect.poll(() => b.lease.isFresh).toBe(true);
  expect(b.reads).toEqual([["y"], null, null]);
});

it("reads everything if the changes are not kept any more", async () => {
  const [a, b] = await openPair();
  a.tell = () => Promise.resolve();
  for (const id of ["x", "y", "z"]) await a.set(id, "1");
  await database.run(sql`DELETE FROM signalbox_settings_change WHERE version <= 2`);
  await b.receive(3);
  expect(b.reads).toEqual([null]);
  expect([...b.items.keys()]).toEqual(["x", "y", "z"]);
});

it("does not wait for a version that the database has lost", async () => {
  const [, b] = await openPair();
  await b.receive(7);
  expect(b.reads).toEqual([null]);
});

it("a write whose message fails was written: its outcome is unknown to the caller", async () => {
  const [a] = await openPair();
  a.tell = () => Promise.reject(new Error("aborted"));
  await expect(a.set("x", "1")).rejects.toMatchObject({ id: "write_outcome_unknown" });
  expect(a.items.get("x")).toBe("1");
});

it("a heartbeat whose rows cannot be read renews nothing, and the next one tries again", async () => {
  const [a, b] = await openPair();
  a.tell = () => Promise.resolve();
  await a.set("x", "1");
  b.beforeRead = () => Promise.reject(new Error("no connection"));
  await beat(b);
  await expect.poll(() => b.errors.length).toBe(1);
  expect(b.lease.isFresh).toBe(false);
  b.beforeRead = () => Promise.resolve();
  await beat(b);
  await expect.poll(() => b.items.get("x")).toBe("1");
});

it("a node that reads everything at the moment acknowledges a later change only when it has it", async () => {
  const [a, b] = await openPair();
  await a.set("x", "1");
  // Node b was declared dead: its next heartbeat reads everything, and is held after it has read the rows.
  const entered = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  b.settings.invalidate();
  b.beforeRead = () => {
    entered.resolve();
    return release.promise;
  };
  await beat(b);
  await entered.promise;
  const revoked = a.delete("x");
  await expect.poll(() => a.items.has("x")).toBe(false);
  release.resolve();
  await revoked;
  expect(b.items.has("x")).toBe(false);
});

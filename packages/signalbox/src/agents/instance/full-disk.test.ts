/** What callers receive when SQLite finds no room in the middle of a transaction that several turns share. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { rawSql, sql } from "../../core/sql.ts";
import {
  type InstanceDatabase,
  type InstanceStore,
  openInstanceStore,
} from "../../engines/instance-store/index.ts";
import { TurnRuntime } from "../../engines/turn-runtime/index.ts";
import { BASE_SCHEMA, RESERVED_NAMES } from "./base-schema.ts";

const fail = (error: Error) => {
  throw error;
};
let folder: string;
let store: InstanceStore;
let database: InstanceDatabase;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-full-"));
  store = await openInstanceStore("journal", {
    folder: join(folder, "agents"),
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    segmentBytes: 2 ** 20,
    onFailure: fail,
    onStall: () => undefined,
  });
  database = await store.open("x", "CREATE TABLE note (text);");
});

afterAll(async () => {
  await database.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

it("all turns of the transaction, and a turn that reads behind them, are told that the storage is unavailable", async () => {
  const runtime = new TurnRuntime<null>({
    owner: {},
    key: "test",
    maxWaiting: 5,
    timeoutMs: 0,
    isInterleaving: false,
    createOverloadError: () => new Error("overloaded"),
    createTimeoutError: () => new Error("timed out"),
    onTurnEnd: () => undefined,
    onIdle: () => undefined,
    onCommitFailure: () => undefined,
  });
  runtime.open(database, () => database.sync());
  await runtime.start(null, { kind: "start", label: "", isInternal: true, body: () => undefined });
  // SQLite finds no room for another page, and rolls back the whole transaction.
  database.run(rawSql("PRAGMA max_page_count = 1"));
  const run = (body: () => void) => runtime.run({ kind: "rpc", label: "", body });
  const turns = [
    run(() => {
      runtime.transactions.open();
      database.run(sql`INSERT INTO note VALUES ('small')`);
    }),
    run(() => {
      runtime.transactions.open();
      database.run(sql`INSERT INTO note VALUES (zeroblob(1000000))`);
    }),
    run(() => void database.all(sql`SELECT * FROM note`)),
  ];
  const outcomes = await Promise.allSettled(turns);
  expect(outcomes).toMatchObject(turns.map(() => ({ reason: { id: "storage_unavailable" } })));
  runtime.finish(() => new Error("gone"));
  expect(database.all(sql`SELECT * FROM note`)).toEqual([]);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrate } from "../../database/migrate.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { callRecord } from "../../engines/call-log/call-log-fixture.ts";
import type { CallRow, ScannedCall } from "../../engines/call-log/index.ts";
import { LogPush } from "./log-push.ts";
import type { S3Object } from "./s3-bucket.ts";

let folder: string;
let database: SqliteDatabase;
let now: number;
let stored: ScannedCall[];
let objects: Map<string, Buffer>;
/** Runs before an object is stored. */
let beforePut: (object: S3Object) => Promise<void>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-push-"));
  database = await SqliteDatabase.open(join(folder, "test.db"), (error) => {
    throw error;
  });
  await migrate(database);
  now = Date.parse("2026-01-01T00:00:00Z");
  stored = [];
  objects = new Map();
  beforePut = async () => undefined;
});
afterEach(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

function store(count: number): void {
  for (let i = 0; i < count; i++) {
    const row = { ...callRecord(), tokenId: null } as unknown as CallRow;
    stored.push({ row, prompt: null, answer: null, request: null, response: null });
  }
}

/** A node. All of them use one database, one log and one bucket. */
function node(): LogPush {
  return new LogPush({
    options: { name: "target", prefix: "p", intervalMs: 3_600_000, withBodies: true, accounts: null },
    bucket: {
      async put(object) {
        await beforePut(object);
        objects.set(object.key, object.body);
      },
    },
    callLog: {
      async storedAfter(position, limit) {
        const from = position === null ? stored.length : Number(position);
        const calls = stored.slice(from, from + limit);
        const end = from + calls.length;
        return { calls, position: String(end), isEnd: end === stored.length };
      },
    },
    database,
    clock: { now: () => now },
    onError: (error) => {
      throw error;
    },
  });
}

/** Ids in the objects that manifests name. */
function copied(): string[] {
  const manifests = [...objects].filter(([key]) => key.includes("/manifests/"));
  return manifests.flatMap(([, text]) =>
    (JSON.parse(String(text)) as { objects: { key: string }[] }).objects.flatMap(({ key }) =>
      zstdDecompressSync(objects.get(key) ?? Buffer.alloc(0))
        .toString()
        .trimEnd()
        .split("\n")
        .map((line) => (JSON.parse(line) as { id: string }).id),
    ),
  );
}
const ids = () => stored.map(({ row }) => row.id);

it("of several nodes one copies, and the other one does not wait for it", async () => {
  const [one, two] = [node(), node()];
  await Promise.all([one.run(), two.run()]);
  store(3);
  const second = Promise.withResolvers<number>();
  beforePut = async () => {
    beforePut = async () => undefined;
    second.resolve(await two.run());
  };
  expect(await one.run()).toBe(3);
  expect(await second.promise).toBe(0);
  expect(copied()).toEqual(ids());
  store(1);
  expect([await two.run(), copied()]).toEqual([1, ids()]);
});

it("a node that was stopped for longer than its hold loses no calls and replaces no object", async () => {
  const [slow, other] = [node(), node()];
  await slow.run();
  store(2);
  beforePut = async () => {
    beforePut = async () => undefined;
    now += 3_600_000;
    store(3);
    expect(await other.run()).toBe(5);
  };
  await slow.run();
  expect(new Set(copied())).toEqual(new Set(ids()));
  store(1);
  await slow.run();
  expect(new Set(copied())).toEqual(new Set(ids()));
});

it("a crash before the manifest or before the position repeats the calls, and a start of a process alone does not wait", async () => {
  await node().run();
  for (const part of [".ndjson.zst", "/manifests/"]) {
    store(2);
    const crashed = node();
    const reached = Promise.withResolvers<void>();
    beforePut = ({ key }) => {
      if (!key.includes(part)) return Promise.resolve();
      reached.resolve();
      // A killed process never goes on.
      return new Promise(() => undefined);
    };
    void crashed.run();
    await reached.promise;
    beforePut = async () => undefined;
    const next = node();
    await next.start();
    expect(await next.run()).toBe(2);
    await next.stop();
  }
  expect(copied()).toEqual(ids());
});

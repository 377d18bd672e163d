/** What webhooks keep in the control plane, on both engines. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openTestPostgres } from "../../../../test/support/test-postgres.ts";
import { ulid } from "../core/ulid.ts";
import { migrate } from "../storage/migrate.ts";
import type { Database } from "../storage/ports/database.ts";
import { PostgresDatabase } from "../storage/postgres/postgres-database.ts";
import { SqliteDatabase } from "../storage/sqlite/sqlite-database.ts";
import { DeliveryLog } from "./delivery-log.ts";
import type { DeliveryRecord } from "./delivery-record.ts";
import { DeliveryTable } from "./delivery-table.ts";
import { EntityClaims } from "./entity-claims.ts";

interface Opened {
  readonly database: Database;
  drop(): Promise<void>;
}

const fail = (error: Error) => {
  throw error;
};

const ENGINES: readonly (readonly [string, () => Promise<Opened>])[] = [
  [
    "sqlite",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "signalbox-webhooks-"));
      const database = await SqliteDatabase.open(join(folder, "signalbox.db"), fail);
      return { database, drop: () => rm(folder, { recursive: true, force: true }) };
    },
  ],
  [
    "postgres",
    async () => {
      const postgres = await openTestPostgres();
      return {
        database: await PostgresDatabase.open(postgres.url, () => undefined),
        drop: () => postgres.drop(),
      };
    },
  ],
];

const logger = pino({ level: "silent" });

function delivery(changes: Partial<DeliveryRecord> = {}): DeliveryRecord {
  return {
    id: ulid(),
    accountId: "default",
    source: "github",
    status: "accepted",
    reason: "processed",
    httpStatus: 200,
    receivedAt: 1_800_000_000_000,
    durationMs: 1.6,
    deliveryId: "d",
    type: "push",
    title: "A push",
    agent: "webhook-agent",
    instance: "acme-widgets",
    contentType: "application/json",
    headers: { "x-github-event": "push" },
    bodyBytes: 3,
    body: Buffer.from([0x7b, 0xff, 0x7d]),
    ...changes,
  };
}

describe.each(ENGINES)("on %s", (_engine, open) => {
  let opened: Opened;
  let database: Database;

  beforeAll(async () => {
    opened = await open();
    database = opened.database;
    await migrate(database);
  });

  afterAll(async () => {
    await database.close();
    await opened.drop();
  });

  it("a stored delivery comes back byte for byte, and lists leave its body out", async () => {
    const log = new DeliveryLog(database, logger, 100);
    const record = delivery({ accountId: "bytes" });
    log.record(record);
    expect(await log.find("bytes", record.id)).toEqual({ ...record, durationMs: 2, body: expect.anything() });
    expect(Buffer.from((await log.find("bytes", record.id))?.body ?? [])).toEqual(record.body);
    expect((await log.list("bytes", {}, undefined, 10)).records).toMatchObject([
      { id: record.id, body: null },
    ]);
    expect(await log.find("someone else", record.id)).toBeUndefined();
  });

  it("rejected ones are listed among the others in order, from memory", async () => {
    const log = new DeliveryLog(database, logger, 100);
    const records = (["accepted", "rejected", "duplicate", "rejected"] as const).map((status) =>
      delivery({ accountId: "mixed", status, body: null }),
    );
    for (const record of records) log.record(record);
    const listed = await log.list("mixed", {}, undefined, 10);
    expect(listed.records.map(({ id }) => id)).toEqual(records.map(({ id }) => id).toReversed());
    const first = await log.list("mixed", {}, undefined, 3);
    const second = await log.list("mixed", {}, first.next ?? "", 3);
    expect([...first.records, ...second.records].map(({ id }) => id)).toEqual(
      listed.records.map(({ id }) => id),
    );
    expect(second.next).toBeNull();
    const after = await log.since("mixed", { status: "rejected" }, records[1]?.id ?? "", 10);
    expect(after.map(({ id }) => id)).toEqual([records[3]?.id]);
    expect(
      (await new DeliveryLog(database, logger, 100).list("mixed", {}, undefined, 10)).records,
    ).toHaveLength(2);
  });

  it("only the newest are kept, and bodies that are too large are not", async () => {
    const log = new DeliveryLog(database, logger, 5);
    for (let i = 0; i < 12; i++) log.record(delivery({ accountId: "bounded", deliveryId: String(i) }));
    log.record(delivery({ accountId: "bounded", deliveryId: "large", body: Buffer.alloc(300 * 1024) }));
    const { records } = await log.list("bounded", {}, undefined, 100);
    expect(records.map(({ deliveryId }) => deliveryId)).toEqual(["large", "11", "10", "9", "8"]);
    expect((await log.find("bounded", records[0]?.id ?? ""))?.body).toBeNull();
    const unbounded = new DeliveryLog(database, logger, 0);
    unbounded.record(delivery({ accountId: "none" }));
    expect((await unbounded.list("none", {}, undefined, 100)).records).toEqual([]);
  });

  it("the list is written within a second, and less often while more come than are kept", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const accountId = "busy";
      const log = new DeliveryLog(database, logger, 3);
      const flush = vi.spyOn(log, "flush");
      const table = new DeliveryTable(database);
      const come = (...ids: string[]) => {
        for (const deliveryId of ids) log.record(delivery({ accountId, deliveryId }));
      };
      const untilWritten = async (deliveryId: string) => {
        while ((await table.before(accountId, {}, undefined, 1))[0]?.deliveryId !== deliveryId)
          await new Promise((resolve) => setImmediate(resolve));
      };
      come("a", "b", "c", "d");
      vi.advanceTimersByTime(1000);
      await untilWritten("d");
      come("e");
      vi.advanceTimersByTime(4999);
      expect(flush).toHaveBeenCalledTimes(1);
      vi.advanceTimersByTime(1);
      await untilWritten("e");
      // That was one, so the list is no longer replaced as a whole.
      come("f");
      vi.advanceTimersByTime(1000);
      await untilWritten("f");
      await log.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it("the first entity owns an ambiguous name, whoever asks and however often, also after a restart", async () => {
    const claims = new EntityClaims(database);
    const resolve = (entity: string, by = claims) => by.resolve("default", "webhook-agent", "a-b-c", entity);
    expect(await Promise.all([resolve("a/b-c"), resolve("a-b/c"), resolve("A/B-C")])).toEqual([
      "a-b-c",
      "a-b_2fc",
      "a-b-c",
    ]);
    expect(resolve("a-b/c")).toBe("a-b_2fc");
    const restarted = new EntityClaims(database);
    expect(await resolve("a-b/c", restarted)).toBe("a-b_2fc");
    expect(await resolve("a/b-c", restarted)).toBe("a-b-c");
    expect(await resolve("a-b-c", restarted)).toBe("a-b-c");
    expect(await restarted.resolve("default", "other-agent", "a-b-c", "a-b/c")).toBe("a-b-c");
    expect(await restarted.resolve("acme", "webhook-agent", "a-b-c", "a-b/c")).toBe("a-b-c");
  });

  it("a claim's name is told once, before the claim is durable", async () => {
    const told: string[] = [];
    const tell = (name: string) => told.push(name);
    const claims = new EntityClaims(database);
    const both = [
      claims.resolve("default", "teller", "x-y-z", "x/y-z", tell),
      claims.resolve("default", "teller", "x-y-z", "x-y/z", tell),
    ].map(async (claim) => {
      const name = await claim;
      expect(told).toContain(name);
      return name;
    });
    expect(await Promise.all(both)).toEqual(["x-y-z", "x-y_2fz"]);
    expect(claims.resolve("default", "teller", "x-y-z", "x/y-z", tell)).toBe("x-y-z");
    expect(told).toEqual(["x-y-z", "x-y_2fz"]);
  });

  it("a name that cannot be shared needs no claim", () => {
    expect(new EntityClaims(database).resolve("default", "webhook-agent", "cus_1", "cus_1")).toBe("cus_1");
  });
});

/** The inspector's list in the control plane, on both database engines. */
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../test/support/engines.ts";
import { waitUntil } from "../../../../test/support/wait-until.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
import { DeliveryLog } from "./delivery-log.ts";
import type { DeliveryFilter, DeliveryRecord } from "./delivery-record.ts";
import { DeliveryTable } from "./delivery-table.ts";

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
    error: null,
    request: null,
    replayedAt: null,
    ...changes,
  };
}

describe.each(ENGINES)("on %s", (_engine, open) => {
  let opened: OpenedDatabase;
  let database: Database;
  const logOf = (keep: number, onDropped = (_count: number) => {}) =>
    new DeliveryLog(database, logger, { keep, onDropped });

  beforeAll(async () => {
    opened = await open();
    database = opened.database;
  });

  afterAll(async () => {
    await database.close();
    await opened.drop();
  });

  it("a search looks at a part of the deliveries at a time, and goes on where it had to end", async () => {
    const accountId = "searched";
    const patient = new DeliveryTable(database, { searched: 10 });
    const hurried = new DeliveryTable(database, { searched: 10, maxSearchMs: 0 });
    const bodyOf = (i: number) => Buffer.from(i % 16 === 0 ? "a needle" : "hay");
    const records = Array.from({ length: 95 }, (_, i) =>
      delivery({ accountId, deliveryId: `d${i}`, body: bodyOf(i), receivedAt: 1_800_000_000_000 + i * 1000 }),
    );
    await patient.insert(records, 1000);
    const needles = ["d80", "d64", "d48", "d32", "d16", "d0"];
    const search = { search: "needle" };
    const idsOf = (found: readonly DeliveryRecord[]) => found.map(({ deliveryId }) => deliveryId);

    const whole = await patient.before(accountId, search, undefined, 100);
    expect([idsOf(whole.records), whole.position, whole.scanned]).toEqual([needles, null, 95]);
    const page = await patient.before(accountId, search, undefined, 2);
    expect([idsOf(page.records), page.position]).toEqual([["d80", "d64"], null]);

    const found: string[] = [];
    let position: string | undefined;
    let pages = 0;
    do {
      const part = await hurried.before(accountId, search, position, 100);
      expect(part.scanned).toBeLessThanOrEqual(10);
      found.push(...idsOf(part.records));
      position = part.position ?? undefined;
      pages += 1;
    } while (position !== undefined);
    expect([found, pages]).toEqual([needles, 10]);

    const steps = await patient.histogram(accountId, search, 60_000);
    expect(steps.reduce((sum, { count }) => sum + count, 0)).toBe(6);
    expect((await patient.before(accountId, {}, undefined, 3)).scanned).toBeNull();
    const left = AbortSignal.abort();
    await expect(patient.histogram(accountId, search, 60_000, left)).rejects.toThrow();
    expect((await patient.before(accountId, search, undefined, 100, left)).scanned).toBe(10);
  });

  it("a stored delivery is read back byte for byte, and lists omit its body", async () => {
    const log = logOf(100);
    const record = delivery({ accountId: "bytes" });
    log.record(record);
    expect(await log.find("bytes", record.id)).toEqual({ ...record, durationMs: 2, body: expect.anything() });
    expect(Buffer.from((await log.find("bytes", record.id))?.body ?? [])).toEqual(record.body);
    expect((await log.list("bytes", {}, undefined, 10)).records).toMatchObject([
      { id: record.id, body: null },
    ]);
    expect(await log.find("someone else", record.id)).toBeUndefined();
  });

  it("rejected deliveries are listed in order among the others, also by another process", async () => {
    const log = logOf(100);
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
    expect((await logOf(100).list("mixed", {}, undefined, 10)).records).toHaveLength(4);
  });

  it("of each source at most a hundred rejected deliveries are kept, and they displace no other", async () => {
    const log = logOf(300);
    const forged = (source: string) =>
      delivery({ accountId: "forged", source, status: "rejected", body: null });
    log.record(delivery({ accountId: "forged", deliveryId: "genuine" }));
    log.record(forged("quiet"));
    for (let i = 0; i < 130; i++) {
      log.record(forged("flooded"));
      if (i % 50 === 0) await log.flush();
    }
    const listed = async (query: object) => (await log.list("forged", query, undefined, 500)).records.length;
    expect(await listed({ source: "flooded" })).toBe(100);
    expect(await listed({ source: "quiet" })).toBe(1);
    expect(await listed({ status: "accepted" })).toBe(1);
  });

  it("failed deliveries outlive the successful ones, with their errors, and are resolved by a replay or a later success", async () => {
    const log = logOf(5);
    const error = {
      name: "TypeError",
      message: "no tracker",
      stack: "TypeError: no tracker\n    at onEvent",
    };
    const failed = (deliveryId: string, source = "github") =>
      delivery({
        accountId: "unresolved",
        status: "failed",
        reason: "handler_failed",
        deliveryId,
        source,
        error,
      });
    const [open, repeated, replayed, other] = [
      failed("open"),
      failed("repeated"),
      failed("replayed"),
      failed("x", "shop"),
    ];
    for (const record of [open, repeated, replayed, other]) log.record(record);
    await log.flush();
    log.record(delivery({ accountId: "unresolved", deliveryId: "repeated" }));
    for (let i = 0; i < 5; i++)
      log.record(delivery({ accountId: "unresolved", status: "duplicate", deliveryId: String(i) }));
    await log.flush();
    await log.markReplayed("unresolved", replayed.id, 1_800_000_000_500);
    expect((await log.list("unresolved", { status: "failed" }, undefined, 10)).records).toHaveLength(4);
    expect(await log.find("unresolved", replayed.id)).toMatchObject({ error, replayedAt: 1_800_000_000_500 });
    const later = delivery({ accountId: "unresolved", deliveryId: "repeated", status: "duplicate" });
    log.record(later);
    const unresolved = await log.since("unresolved", { isUnresolved: true }, "", 10);
    expect(unresolved.map(({ id }) => id)).toEqual([open.id, other.id]);
    const { byStatus, unresolved: counted } = await log.summary("unresolved", {});
    expect(counted.map(({ source, count }) => [source, count])).toEqual([
      ["github", 1],
      ["shop", 1],
    ]);
    expect(byStatus.find(({ source, status }) => source === "github" && status === "failed")?.count).toBe(3);
    const none = await log.summary("unresolved", { since: 1_800_000_000_001 });
    expect(none.byStatus).toEqual([]);
  });

  it("only the newest deliveries are kept, and no body that is too large", async () => {
    const log = logOf(5);
    for (let i = 0; i < 12; i++) log.record(delivery({ accountId: "bounded", deliveryId: String(i) }));
    log.record(delivery({ accountId: "bounded", deliveryId: "large", body: Buffer.alloc(300 * 1024) }));
    const { records } = await log.list("bounded", {}, undefined, 100);
    expect(records.map(({ deliveryId }) => deliveryId)).toEqual(["large", "11", "10", "9", "8"]);
    expect((await log.find("bounded", records[0]?.id ?? ""))?.body).toBeNull();
    const unbounded = logOf(0);
    unbounded.record(delivery({ accountId: "none" }));
    expect((await unbounded.list("none", {}, undefined, 100)).records).toEqual([]);
  });

  it("after the number kept was lowered, the rows beyond are deleted a part at a time, those that succeeded and those that failed", async () => {
    const accountId = "lowered";
    const record = (i: number) => {
      const status = i % 2 === 0 ? "accepted" : "failed";
      return delivery({ accountId, status, deliveryId: String(i), receivedAt: i, body: null });
    };
    const table = new DeliveryTable(database);
    for (let i = 0; i < 5000; i += 500)
      await table.insert(
        Array.from({ length: 500 }, (_, j) => record(i + j)),
        10_000,
      );
    const log = logOf(20);
    const counts = async () => {
      const { byStatus } = await log.summary(accountId, {});
      return Object.fromEntries(byStatus.map(({ status, count }) => [status, count]));
    };
    log.record(record(5000));
    const before = await counts();
    // One write deletes a thousand of each kind.
    expect(before).toEqual({ accepted: 1501, failed: 1500 });
    expect(await waitUntil(counts, ({ failed }) => failed === 20)).toEqual({ accepted: 20, failed: 20 });
    const [newest] = (await log.list(accountId, { status: "accepted" }, undefined, 1)).records;
    expect(newest?.deliveryId).toBe("5000");
    await log.close();
  });

  it("rows beyond the number kept are looked for again when a hundredth more was written", async () => {
    const reads: string[] = [];
    const counting: Database = {
      engine: database.engine,
      problem: null,
      all: (query) => database.all(query),
      scan: (query, turn) => {
        if (query.parts.join("").includes("OFFSET")) reads.push(query.parts.join("?"));
        return database.scan(query, turn);
      },
      get: (query) => database.get(query),
      run: (query) => database.run(query),
      transaction: (work) => database.transaction(work),
      close: () => Promise.resolve(),
    };
    const log = new DeliveryLog(counting, logger, { keep: 1000, onDropped: () => undefined });
    const write = async (count: number) => {
      for (let i = 0; i < count; i++) log.record(delivery({ accountId: "looks", deliveryId: String(i) }));
      await log.flush();
      return reads.splice(0).length;
    };
    // Both kinds, because another number may have been kept before.
    expect(await write(1)).toBe(2);
    expect(await write(10)).toBe(0);
    expect(await write(1)).toBe(1);
  });

  it("lists and counts never run on the thread of the event loop", async () => {
    const refuse = () => Promise.reject(new Error("read on the thread of the event loop"));
    const table = new DeliveryTable({
      engine: database.engine,
      problem: null,
      all: refuse,
      get: refuse,
      run: refuse,
      transaction: (work) => database.transaction(work),
      scan: (query, turn) => database.scan(query, turn),
      close: () => Promise.resolve(),
    });
    const accountId = "aside";
    const record = delivery({ accountId, status: "failed" });
    await table.insert([record, delivery({ accountId: "other" })], 100);
    const filters: DeliveryFilter[] = [
      ...(["source", "instance", "type", "reason", "status", "deliveryId"] as const).map((name) => ({
        [name]: record[name],
      })),
      { since: record.receivedAt, until: record.receivedAt + 1 },
      { isUnresolved: true },
      {},
    ];
    for (const filter of filters) {
      expect(
        (await table.before(accountId, filter, undefined, 10)).records,
        JSON.stringify(filter),
      ).toMatchObject([{ id: record.id }]);
      expect(await table.after(accountId, filter, "", 10)).toMatchObject([{ id: record.id }]);
      expect(await table.counts(accountId, filter)).toMatchObject([{ status: "failed", count: 1 }]);
    }
    expect((await table.alsoRejected(accountId, {})).size).toBe(0);
  });

  it("the list is written within a second, and less often while more deliveries arrive than are kept", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const accountId = "busy";
      const log = logOf(3);
      const flush = vi.spyOn(log, "flush");
      const table = new DeliveryTable(database);
      const come = (...ids: string[]) => {
        for (const deliveryId of ids) log.record(delivery({ accountId, deliveryId }));
      };
      const untilWritten = async (deliveryId: string) => {
        while ((await table.before(accountId, {}, undefined, 1)).records[0]?.deliveryId !== deliveryId)
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
      // The last flush wrote one record, so the list is no longer replaced as a whole.
      come("f");
      vi.advanceTimersByTime(1000);
      await untilWritten("f");
      await log.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it("records that a failing database cannot store are listed from memory, and are written when it works again", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const accountId = "failing";
      let dropped = 0;
      let attempts = 0;
      let isFull = true;
      const failing: Database = {
        engine: database.engine,
        problem: null,
        all: (query) => database.all(query),
        scan: (query, turn) => database.scan(query, turn),
        get: (query) => database.get(query),
        run: (query) => database.run(query),
        transaction: (work) => {
          attempts += 1;
          return isFull ? Promise.reject(new Error("disk is full")) : database.transaction(work);
        },
        close: () => Promise.resolve(),
      };
      const log = new DeliveryLog(failing, logger, { keep: 3, onDropped: (count) => (dropped += count) });
      const listed = async () =>
        (await log.list(accountId, {}, undefined, 10)).records.map(({ deliveryId }) => deliveryId);
      log.record(delivery({ accountId, deliveryId: "a" }));
      log.record(delivery({ accountId, deliveryId: "b" }));
      expect(await listed()).toEqual(["b", "a"]);
      for (const deliveryId of ["c", "d", "e"]) log.record(delivery({ accountId, deliveryId }));
      expect(await listed()).toEqual(["e", "d", "c"]);
      expect(await listed()).toEqual(["e", "d", "c"]);
      expect([attempts, dropped]).toEqual([1, 2]);
      vi.advanceTimersByTime(1000);
      await log.flush();
      // Twice as long as before.
      vi.advanceTimersByTime(1999);
      await log.flush();
      expect(attempts).toBe(2);
      isFull = false;
      vi.advanceTimersByTime(1);
      await log.flush();
      const stored = await new DeliveryTable(database).before(accountId, {}, undefined, 10);
      expect(stored.records.map(({ deliveryId }) => deliveryId)).toEqual(["e", "d", "c"]);
      expect(await listed()).toEqual(["e", "d", "c"]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("a flush of a hundred deliveries is one insert", async () => {
    const statements: string[] = [];
    const counting: Database = {
      engine: database.engine,
      problem: null,
      all: (query) => database.all(query),
      scan: (query, turn) => database.scan(query, turn),
      get: (query) => database.get(query),
      run: (query) => database.run(query),
      transaction: (work) =>
        database.transaction((tx) =>
          work({
            all: (query) => tx.all(query),
            get: (query) => tx.get(query),
            run: (query) => {
              statements.push(query.parts[0]?.slice(0, 6) ?? "");
              return tx.run(query);
            },
          }),
        ),
      close: () => Promise.resolve(),
    };
    const log = new DeliveryLog(counting, logger, { keep: 1000, onDropped: () => undefined });
    for (let i = 0; i < 100; i++) log.record(delivery({ accountId: "hundred", deliveryId: String(i) }));
    expect((await log.list("hundred", {}, undefined, 100)).records).toHaveLength(100);
    expect(statements).toEqual(["INSERT"]);
  });
});

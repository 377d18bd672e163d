/** A follower on PostgreSQL: what is stored is seen when no call that began earlier can be running. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ulidFloor } from "../../../core/ulid.ts";
import { callRecord, HOUR } from "../call-log-fixture.ts";
import type { PostgresCallLog } from "./postgres-call-log.ts";
import { PostgresLogs, type PostgresStorage } from "./postgres-log-fixture.ts";

const START = Date.parse("2026-01-01T12:00:00Z");

let logs: PostgresLogs;
let storage: PostgresStorage;
let log: PostgresCallLog;
let now = START;
beforeAll(async () => {
  logs = await PostgresLogs.start();
  storage = await logs.openStorage();
  log = await storage.openLog({ clock: { now: () => now } });
});
afterAll(async () => {
  await log.close();
  await storage.remove();
  await logs.stop();
});

it("shows a call late enough that a slower one that began before it comes first, and each one once", async () => {
  let { position } = await log.storedAfter(null, 10);
  const next = async (limit = 10) => {
    const stored = await log.storedAfter(position, limit);
    ({ position } = stored);
    return stored.calls.map(({ row }) => row.id);
  };
  const fast = [0, 1, 2].map((i) => callRecord({ createdAt: START + i }));
  for (const call of fast) log.record(call);
  now = START + HOUR;
  expect(await next()).toEqual([]);
  // Began before the others and ended an hour later.
  const slow = callRecord({ createdAt: START - 1 });
  log.record(slow);
  now = START + 2 * HOUR;
  expect([...(await next(2)), ...(await next(2)), ...(await next(2))]).toEqual([
    slow.id,
    ...fast.map(({ id }) => id),
  ]);
  expect(await next()).toEqual([]);
  expect(position >= ulidFloor(START)).toBe(true);
});

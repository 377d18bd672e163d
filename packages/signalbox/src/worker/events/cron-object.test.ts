import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ScheduledEvent } from "../program/worker-runtime.ts";
import { checkCrons, createCronClass, nextRun } from "./cron-object.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, 1, 0, 0, 30) }));
afterEach(() => vi.useRealTimers());

function start(...crons: string[]) {
  const ran: ScheduledEvent[] = [];
  const stored = new Map<string, unknown>();
  let alarmAt: number | null = null;
  const storage = {
    kv: {
      get: (key: string) => stored.get(key),
      put: (key: string, value: unknown) => void stored.set(key, value),
    },
    setAlarm: async (time: number) => {
      alarmAt = time;
    },
    getAlarm: async () => alarmAt,
    deleteAlarm: async () => {
      alarmAt = null;
    },
  };
  const create = (all: readonly string[]) => {
    const run = async (event: ScheduledEvent) => {
      ran.push(event);
      if (event.cron === "* * * * *") throw new Error("one trigger fails");
    };
    const triggers = all.map((cron) => ({ cron, run }));
    const CronClass = createCronClass({ logger: pino({ level: "silent" }), triggers });
    return new CronClass({ storage }, {});
  };
  const object = create(crons);
  const runDue = async () => {
    if (alarmAt !== null && alarmAt <= Date.now()) await object.alarm();
  };
  return { object, ran, runDue, alarmAt: () => alarmAt, create };
}

test("each trigger runs at its times, whatever another one does", async () => {
  const { object, ran, runDue, alarmAt } = start("* * * * *", "*/2 * * * *");
  await object.begin();
  expect(alarmAt()).toBe(Date.UTC(2026, 0, 1, 0, 1));
  for (let minute = 1; minute <= 2; minute += 1) {
    vi.setSystemTime(Date.UTC(2026, 0, 1, 0, minute));
    await runDue();
  }
  expect(ran).toEqual([
    { cron: "* * * * *", scheduledTime: Date.UTC(2026, 0, 1, 0, 1) },
    { cron: "* * * * *", scheduledTime: Date.UTC(2026, 0, 1, 0, 2) },
    { cron: "*/2 * * * *", scheduledTime: Date.UTC(2026, 0, 1, 0, 2) },
  ]);
});

test("times that passed before a start are not made up, and no triggers means no alarm", async () => {
  const { object, ran, runDue, alarmAt } = start("0 * * * *");
  await object.begin();
  vi.setSystemTime(Date.UTC(2026, 0, 1, 5, 0, 30));
  await object.begin();
  expect(alarmAt()).toBe(Date.UTC(2026, 0, 1, 6));
  await runDue();
  expect(ran).toEqual([]);
  const none = start();
  await none.object.begin();
  expect(none.alarmAt()).toBeNull();
});

test("a node that starts leaves the triggers of the cluster as they are, also one that is just due", async () => {
  const { object, ran, runDue, alarmAt, create } = start("0 * * * *");
  await object.begin();
  const due = Date.UTC(2026, 0, 1, 1);
  vi.setSystemTime(due + 3000);
  await object.begin();
  expect(alarmAt()).toBe(due);
  await runDue();
  expect(ran).toEqual([{ cron: "0 * * * *", scheduledTime: due }]);
  // Another program has other triggers.
  await create(["30 * * * *"]).begin();
  expect(alarmAt()).toBe(Date.UTC(2026, 0, 1, 1, 30));
});

test("days of the week count from Sunday as 1", () => {
  // 1 January 2026 is a Thursday.
  expect(nextRun("0 0 * * 1", Date.UTC(2026, 0, 1))).toBe(Date.UTC(2026, 0, 4));
  expect(nextRun("0 0 * * SUN", Date.UTC(2026, 0, 1))).toBe(Date.UTC(2026, 0, 4));
  expect(() => checkCrons(["* * * *"])).toThrow(/triggers\.crons: "\* \* \* \*" is not a cron expression/);
});

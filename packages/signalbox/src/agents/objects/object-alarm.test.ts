import { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sql } from "../../core/sql.ts";
import type { AlarmInfo } from "./object-alarm.ts";
import { openStorage, type TestStorage } from "./storage-fixture.ts";

let now: number;
let test: TestStorage;
let rings: AlarmInfo[];
let givenUp: unknown[];
let handler: (info: AlarmInfo) => unknown;
let isStorageDown: boolean;

beforeEach(async () => {
  now = 1_000_000;
  rings = [];
  givenUp = [];
  handler = () => undefined;
  isStorageDown = false;
  test = await openStorage({
    clock: { now: () => now },
    ring: (info) => {
      rings.push(info);
      return handler(info);
    },
    isStorageDown: () => isStorageDown,
    onGiveUp: (error) => givenUp.push(error),
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  test.alarm.start(true, false);
});
afterEach(async () => {
  vi.useRealTimers();
  await test.close();
});

/** Lets time pass, and what is due then run. */
async function pass(ms: number): Promise<void> {
  now += ms;
  await vi.advanceTimersByTimeAsync(ms);
  await settle();
}
/** Commits happen in later iterations of the event loop, and a handler runs when its attempt is on the disk. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    await test.runtime.outputs.pass();
  }
}
async function setAlarm(at: number): Promise<void> {
  await test.storage.setAlarm(at);
  await settle();
}

describe("an alarm", () => {
  it("rings once at its time, and the catalog knows the time before", async () => {
    await setAlarm(now + 500);
    expect([await test.storage.getAlarm(), test.due.at(-1)]).toEqual([now + 500, now + 500]);
    await pass(499);
    expect(rings).toEqual([]);
    await pass(1);
    expect(rings).toEqual([{ retryCount: 0, isRetry: false, scheduledTime: 1_000_500 }]);
    expect([await test.storage.getAlarm(), test.due.at(-1)]).toEqual([null, null]);
    await pass(100_000);
    expect(rings).toHaveLength(1);
  });

  it("is replaced by a later one, and deleted", async () => {
    await setAlarm(now + 500);
    await setAlarm(now + 900);
    await pass(500);
    expect(rings).toEqual([]);
    await test.storage.deleteAlarm();
    await settle();
    await pass(1000);
    expect(rings).toEqual([]);
  });

  it("that the constructor of a new object sets rings", async () => {
    test.alarm.stop();
    await setAlarm(now + 500);
    test.alarm.start(true, false);
    await pass(500);
    expect(rings).toHaveLength(1);
  });

  it("in the past rings at once", async () => {
    await setAlarm(1);
    await pass(1);
    expect(rings).toHaveLength(1);
  });

  it("is tried again six times, after two seconds and then twice as long each time", async () => {
    handler = () => {
      throw new Error("failed");
    };
    await setAlarm(now);
    await pass(1);
    const waits = [2, 4, 8, 16, 32, 64];
    for (const [i, seconds] of waits.entries()) {
      expect(rings).toHaveLength(i + 1);
      await pass(seconds * 1000 - 1);
      expect(rings).toHaveLength(i + 1);
      await pass(1);
    }
    expect(rings.map(({ retryCount }) => retryCount)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect([givenUp.length, await test.storage.getAlarm()]).toEqual([1, null]);
    await pass(3_600_000);
    expect(rings).toHaveLength(7);
  });

  it("that the storage has failed is tried again after two seconds, and its attempts are not counted", async () => {
    isStorageDown = true;
    handler = () => {
      throw new SignalboxError("storage_unavailable");
    };
    await setAlarm(now);
    await pass(1);
    for (let i = 0; i < 10; i += 1) await pass(2000);
    expect(rings.map(({ retryCount }) => retryCount)).toEqual(Array.from({ length: 11 }, () => 0));
    isStorageDown = false;
    handler = () => undefined;
    await pass(2000);
    expect([rings.length, givenUp, await test.storage.getAlarm()]).toEqual([12, [], null]);
  });

  it("that fills the disk by itself runs out of attempts", async () => {
    isStorageDown = true;
    handler = () => {
      throw new SignalboxError("storage_unavailable");
    };
    await setAlarm(now);
    await pass(1);
    while (givenUp.length === 0) await pass(2000);
    expect(await test.storage.getAlarm()).toBeNull();
  });

  it("whose object the storage has ended is tried again at once, and the attempt is not counted", async () => {
    const end = Promise.withResolvers<void>();
    handler = () => end.promise;
    let { alarm } = test;
    await setAlarm(now);
    await pass(1);
    for (let i = 0; i < 10; i += 1) {
      alarm.stop();
      alarm = test.createAlarm();
      alarm.start(false, true);
      await pass(1);
    }
    expect(rings.map(({ retryCount }) => retryCount)).toEqual(Array.from({ length: 11 }, () => 0));
    alarm.stop();
    end.resolve();
  });

  it("that ended the process uses up its attempts too: the first repeat is at once, then it waits", async () => {
    // A process that ends in the handler leaves the row as it is while the handler runs; the next process has another object.
    const end = Promise.withResolvers<void>();
    handler = () => end.promise;
    let { alarm } = test;
    const crash = async () => {
      alarm.stop();
      alarm = test.createAlarm();
      alarm.start(false, false);
      await pass(1);
    };
    await setAlarm(now);
    await pass(1);
    expect(rings).toHaveLength(1);
    await crash();
    expect(rings.at(-1)).toMatchObject({ retryCount: 1, isRetry: true });
    for (const [i, seconds] of [4, 8, 16, 32, 64].entries()) {
      await crash();
      await pass(seconds * 1000 - 2);
      expect(rings).toHaveLength(i + 2);
      await pass(2);
    }
    expect(rings.map(({ retryCount }) => retryCount)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    await crash();
    await pass(3_600_000);
    expect([rings.length, givenUp.length, await test.storage.getAlarm()]).toEqual([7, 1, null]);
    alarm.stop();
    end.resolve();
  });

  it("that its handler sets again rings again, also if the handler fails then", async () => {
    handler = async () => {
      expect(await test.storage.getAlarm()).toBeNull();
      await test.storage.setAlarm(now + 300);
      handler = () => undefined;
      throw new Error("failed");
    };
    await setAlarm(now);
    await pass(1);
    expect(await test.storage.getAlarm()).toBe(now + 300);
    await pass(300);
    expect(rings.map(({ retryCount }) => retryCount)).toEqual([0, 0]);
  });

  it("does not ring twice at a time", async () => {
    const gate = Promise.withResolvers<void>();
    handler = () => gate.promise;
    await setAlarm(now);
    await pass(1);
    await test.storage.setAlarm(now);
    await settle();
    await vi.advanceTimersByTimeAsync(1000);
    expect(rings).toHaveLength(1);
    gate.resolve();
    await pass(1);
    expect(rings).toHaveLength(2);
  });

  it("of a transaction that is rolled back does not ring", async () => {
    await setAlarm(now + 500);
    expect(() =>
      test.storage.transactionSync(() => {
        void test.storage.setAlarm(now + 100);
        throw new Error("undo");
      }),
    ).toThrow("undo");
    await settle();
    expect(await test.storage.getAlarm()).toBe(now + 500);
    await pass(100);
    expect(rings).toEqual([]);
  });

  it("whose row cannot be read or changed is tried again later, and not at once for ever", async () => {
    const run = vi.spyOn(test.runtime, "run");
    await setAlarm(now + 500);
    test.database.run(
      sql`CREATE TRIGGER damaged BEFORE UPDATE ON _signalbox_object BEGIN SELECT RAISE(IGNORE); END`,
    );
    await pass(500);
    await pass(1999);
    expect([rings.length, run.mock.calls.length]).toEqual([0, 1]);
    test.database.run(sql`ALTER TABLE _signalbox_object RENAME TO gone`);
    await pass(1);
    await pass(1999);
    expect([rings.length, run.mock.calls.length]).toEqual([0, 2]);
    test.database.run(sql`ALTER TABLE gone RENAME TO _signalbox_object`);
    test.database.run(sql`DROP TRIGGER damaged`);
    await pass(1);
    expect([rings.length, run.mock.calls.length]).toEqual([1, 3]);
  });

  it("needs a time", async () => {
    await expect(test.storage.setAlarm(Number.NaN)).rejects.toThrow(TypeError);
    await expect(test.storage.setAlarm(0)).rejects.toThrow("<= 0");
    await setAlarm(now + 700);
    await test.storage.setAlarm(new Date(now + 800));
    expect(await test.storage.getAlarm()).toBe(now + 800);
  });
});

/** An attempt is counted before it runs, on storage that needs time for it as on storage that does not. */
import { setImmediate as settle } from "node:timers/promises";
import { SignalboxError } from "@signalbox/protocol";
import { expect, it } from "vitest";
import { TestClock } from "../../testing/test-clock.ts";
import { STORAGE_PAUSE_MS, WorkPump, type WorkPumpOptions } from "./work-pump.ts";

/** One item of the queue is due. `commitNow` is what the storage answers. */
function startPump(
  commitNow: () => Promise<void> | null,
  whenDueStored: () => Promise<void> | null = () => null,
) {
  const events: string[] = [];
  let isDue = true;
  const attempt = {
    item: { callback: "method", payload: null },
    complete: () => void events.push("completed"),
    fail: () => false,
  };
  const pump = new WorkPump({
    run: (turn: { body(subject: undefined): unknown }) => Promise.resolve().then(() => turn.body(undefined)),
    transactions: { join: () => undefined, commitNow },
    queue: {
      nextAt: () => (isDue ? 0 : null),
      begin: () => {
        isDue = false;
        events.push("begun");
        return attempt;
      },
    },
    schedules: { nextAt: () => null, begin: () => null },
    clock: { now: () => 1 },
    perform: () => void events.push("performed"),
    onDue: () => undefined,
    whenDueStored,
    onIdle: () => void events.push("idle"),
    onBuried: () => undefined,
    onStorageFailure: (error: unknown) => void events.push(String(error)),
  } as unknown as WorkPumpOptions);
  pump.start(false, false);
  return { pump, events };
}

it("the method runs when the storage has the number of attempts", async () => {
  const stored = Promise.withResolvers<void>();
  const { pump, events } = startPump(() => {
    events.push("sent");
    return stored.promise;
  });
  await expect.poll(() => events).toEqual(["begun", "sent"]);
  stored.resolve();
  await expect.poll(() => events).toEqual(["begun", "sent", "performed", "completed", "idle"]);
  pump.stop();
});

it("the method runs at once if the storage has it already", async () => {
  const { pump, events } = startPump(() => null);
  await expect.poll(() => events).toEqual(["begun", "performed", "completed", "idle"]);
  pump.stop();
});

it("nothing runs before the due time is stored: after a crash nobody would wake the instance", async () => {
  const stored = Promise.withResolvers<void>();
  let isStored = false;
  const { pump, events } = startPump(
    () => null,
    () => (isStored ? null : stored.promise),
  );
  pump.changed();
  pump.afterCommit();
  await new Promise((resolve) => setImmediate(resolve));
  expect([events, pump.isIdle]).toEqual([[], false]);
  isStored = true;
  stored.resolve();
  await expect.poll(() => events).toEqual(["begun", "performed", "completed", "idle"]);
  pump.stop();
});

it("nothing runs if the due time cannot be stored", async () => {
  const { pump, events } = startPump(
    () => null,
    () => Promise.reject(new Error("unavailable")),
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toEqual([]);
  pump.stop();
});

it("a turn that is refused is not asked for again: the instance is leaving memory", async () => {
  let asked = 0;
  const pump = new WorkPump({
    run: () => {
      asked += 1;
      return Promise.reject(new Error("closed"));
    },
    transactions: { join: () => undefined, commitNow: () => null },
    queue: { nextAt: () => 0, begin: () => null },
    schedules: { nextAt: () => null, begin: () => null },
    clock: { now: () => 1 },
    onDue: () => undefined,
    whenDueStored: () => null,
    onIdle: () => undefined,
  } as unknown as WorkPumpOptions);
  pump.start(false, false);
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toBe(1);
  pump.stop();
});

it("the event loop has its turn, also when every run fails and its failure is committed", async () => {
  let runs = 0;
  const pump: WorkPump = new WorkPump({
    run: async (turn: { body(): unknown; afterFailure(error: unknown): void }) => {
      try {
        await turn.body();
      } catch (error) {
        turn.afterFailure(error);
        process.nextTick(() => pump.afterCommit());
      }
    },
    transactions: { join: () => undefined, commitNow: () => null },
    queue: {
      // Bounded, so that the test ends without the turn of the event loop, too.
      nextAt: () => (runs < 10_000 ? 0 : null),
      begin: () => ({ item: {}, complete: () => undefined, fail: () => pump.changed() }),
    },
    schedules: { nextAt: () => null, begin: () => null },
    clock: { now: () => 1 },
    perform: () => {
      runs += 1;
      throw new Error("no");
    },
    onDue: () => undefined,
    whenDueStored: () => null,
    onIdle: () => undefined,
  } as unknown as WorkPumpOptions);
  pump.start(false, false);
  await new Promise((resolve) => setImmediate(resolve));
  expect(runs).toBeLessThan(1000);
  pump.stop();
});

/** A pump whose turns run within the call of `run`, as the mailbox of an idle instance runs them. */
function startSynchronously(
  clock: TestClock,
  parts: Pick<WorkPumpOptions, "queue" | "schedules" | "perform" | "onStorageFailure">,
): WorkPump {
  const pump = new WorkPump({
    run: (turn: { body(): unknown; afterFailure(error: unknown): void }) => {
      try {
        const result = turn.body();
        pump.afterCommit();
        return Promise.resolve(result);
      } catch (error) {
        turn.afterFailure(error);
        return Promise.reject(error);
      }
    },
    transactions: { join: () => undefined, commitNow: () => null },
    clock,
    onDue: () => undefined,
    whenDueStored: () => null,
    onIdle: () => undefined,
    onBuried: () => undefined,
    ...parts,
  } as unknown as WorkPumpOptions);
  pump.start(false, false);
  return pump;
}

it("work whose storage failed for a moment goes on after the pause, also beside a schedule of later", async () => {
  const clock = new TestClock(0);
  const failures: unknown[] = [];
  let isFull = true;
  let isDone = false;
  const queue = {
    nextAt: () => (isDone ? null : 0),
    begin: () => {
      if (isFull) throw new Error("the disk is full");
      return { item: { id: "a" }, complete: () => (isDone = true), fail: () => false };
    },
  };
  const schedules = { nextAt: () => 3_600_000, begin: () => null };
  const onStorageFailure = (error: unknown) => void failures.push(error);
  const pump = startSynchronously(clock, {
    queue,
    schedules,
    perform: () => undefined,
    onStorageFailure,
  } as never);
  expect(failures).toHaveLength(1);
  isFull = false;
  await clock.advance(STORAGE_PAUSE_MS, () => settle());
  expect(isDone).toBe(true);
  pump.stop();
});

it("an attempt that the storage has ended is repeated after the pause and not counted, unless the work fills the disk itself", async () => {
  const clock = new TestClock(0);
  const begun: boolean[] = [];
  const failed: unknown[] = [];
  const queue = {
    nextAt: () => (failed.length === 0 ? clock.now() : null),
    begin: (isResumed: boolean) => {
      begun.push(isResumed);
      return { item: { id: "a" }, complete: () => undefined, fail: (error: unknown) => failed.push(error) };
    },
  };
  const pump = startSynchronously(clock, {
    queue,
    schedules: { nextAt: () => null, begin: () => null },
    perform: () => {
      throw new SignalboxError("storage_unavailable");
    },
    isStorageDown: () => true,
    onStorageFailure: () => undefined,
  } as never);
  for (let i = 0; i < 10; i += 1) await clock.advance(STORAGE_PAUSE_MS, () => settle());
  expect([begun, failed]).toEqual([[false, ...Array.from({ length: 10 }, () => true)], []]);
  for (let i = 0; i < 10; i += 1) await clock.advance(STORAGE_PAUSE_MS, () => settle());
  expect(failed).toHaveLength(1);
  pump.stop();
});

/** An attempt is counted before it runs, on storage that needs time for it as on storage that does not. */
import { expect, it } from "vitest";
import { WorkPump, type WorkPumpOptions } from "./work-pump.ts";

/** One item of the queue is due. `commitNow` is what the storage answers. */
function startPump(commitNow: () => Promise<void> | null) {
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
    onIdle: () => undefined,
    onBuried: () => undefined,
    onStorageFailure: () => undefined,
  } as unknown as WorkPumpOptions);
  pump.start(false);
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
  await expect.poll(() => events).toEqual(["begun", "sent", "performed", "completed"]);
  pump.stop();
});

it("the method runs at once if the storage has it already", async () => {
  const { pump, events } = startPump(() => null);
  await expect.poll(() => events).toEqual(["begun", "performed", "completed"]);
  pump.stop();
});

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { closeAll } from "./close-all.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

it("closes the last opened first, and the rest when one fails; the failure is told in the end", async () => {
  const closed: string[] = [];
  const closing = closeAll(
    [
      { close: () => void closed.push("folder") },
      { close: () => Promise.reject(new Error("no room")) },
      { close: async () => void closed.push("area") },
    ],
    null,
  );
  await expect(closing).rejects.toThrow("no room");
  expect(closed).toEqual(["area", "folder"]);
});

it("leaves a part that waits for room after a while, and still closes the others in full", async () => {
  const closed: string[] = [];
  const closing = closeAll(
    [
      {
        close: () =>
          new Promise((resolve) => setTimeout(() => resolve(void closed.push("database")), 60_000)),
      },
      { close: () => new Promise(() => undefined), canStall: true },
    ],
    { problem: "the disk is full" },
  );
  const outcome = closing.then(
    () => "closed",
    (error: Error) => error.message,
  );
  await vi.advanceTimersByTimeAsync(70_000);
  expect(await outcome).toContain("the disk is full; nothing is lost");
  expect(closed).toEqual(["database"]);
});

it("waits for a part that is slow without a problem", async () => {
  const closing = closeAll(
    [{ close: () => new Promise((resolve) => setTimeout(resolve, 60_000)), canStall: true }],
    { problem: null },
  );
  await vi.advanceTimersByTimeAsync(60_000);
  await closing;
});

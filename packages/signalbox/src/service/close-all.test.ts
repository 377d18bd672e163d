import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { closeAll } from "./close-all.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

it("closes in reverse order, continues after an error, and throws it at the end", async () => {
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

it("stops waiting for a stalled part after the time limit, and closes the others", async () => {
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
  expect(await outcome).toContain("the disk is full; no acknowledged write is lost");
  expect(closed).toEqual(["database"]);
});

it("waits for a slow part without a problem", async () => {
  const closing = closeAll(
    [{ close: () => new Promise((resolve) => setTimeout(resolve, 60_000)), canStall: true }],
    { problem: null },
  );
  await vi.advanceTimersByTimeAsync(60_000);
  await closing;
});

import { expect, it } from "vitest";
import { fullJitterDelay, retry } from "./retry.ts";

const policy = { maxAttempts: 3, baseDelayMs: 1, maxDelayMs: 2 };

it("retries until an attempt succeeds", async () => {
  const attempts: number[] = [];
  const result = await retry(async (number) => {
    attempts.push(number);
    if (number < 3) throw new Error("not yet");
    return "done";
  }, policy);
  expect([result, attempts]).toEqual(["done", [1, 2, 3]]);
});

it("throws the last error after the last attempt", async () => {
  await expect(retry((number) => Promise.reject(new Error(`failed ${number}`)), policy)).rejects.toThrow(
    "failed 3",
  );
});

it("does not retry an error that is not retryable", async () => {
  let count = 0;
  const failing = retry(
    () => {
      count += 1;
      return Promise.reject(new Error("final"));
    },
    { ...policy, isRetryable: () => false },
  );
  await expect(failing).rejects.toThrow("final");
  expect(count).toBe(1);
});

it("stops when the signal aborts during a delay", async () => {
  const controller = new AbortController();
  const waiting = retry(
    () => {
      queueMicrotask(() => controller.abort(new Error("enough")));
      return Promise.reject(new Error("failed"));
    },
    { maxAttempts: 2, baseDelayMs: 1e9, maxDelayMs: 1e9, signal: controller.signal, random: () => 1 },
  );
  await expect(waiting).rejects.toThrow();
});

it("chooses a delay between 0 and a bound that doubles up to the maximum", () => {
  const limits = { baseDelayMs: 100, maxDelayMs: 3000 };
  expect([1, 2, 3, 10].map((attempt) => fullJitterDelay(attempt, limits, () => 1))).toEqual([
    100, 200, 400, 3000,
  ]);
  expect(fullJitterDelay(5, limits, () => 0)).toBe(0);
});

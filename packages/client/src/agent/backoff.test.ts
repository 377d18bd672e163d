import { describe, expect, it } from "vitest";
import { DEFAULT_BACKOFF, fullJitterDelay } from "./backoff.ts";

describe("fullJitterDelay", () => {
  it("doubles its bound with every attempt up to the maximum", () => {
    const bounds = [1, 2, 3, 6, 7, 100].map((attempt) => fullJitterDelay(attempt, DEFAULT_BACKOFF, () => 1));
    expect(bounds).toEqual([250, 500, 1000, 8000, 10_000, 10_000]);
  });

  it("is distributed over the whole range below the bound", () => {
    expect(fullJitterDelay(3, DEFAULT_BACKOFF, () => 0)).toBe(0);
    expect(fullJitterDelay(3, DEFAULT_BACKOFF, () => 0.5)).toBe(500);
  });
});

import { expect, it } from "vitest";
import { within } from "./within.ts";

const late = () => new Error("too late");

it("settles like the promise if it settles in time", async () => {
  expect(await within(Promise.resolve(5), 1000, late)).toBe(5);
  await expect(within(Promise.reject(new Error("own")), 1000, late)).rejects.toThrow("own");
});

it("rejects after the timeout", async () => {
  await expect(within(new Promise(() => undefined), 5, late)).rejects.toThrow("too late");
});

import { expect, it } from "vitest";
import { SignalboxError } from "@signalbox/protocol";
import { FailureThrottle } from "./failure-throttle.ts";

let now = 0;
const attempt = (throttle: FailureThrottle, address: string): string => {
  try {
    throttle.record(address);
    return "counted";
  } catch (error) {
    return error instanceof SignalboxError ? `${error.status} ${error.headers["retry-after"]}` : "?";
  }
};

it("answers 429 with the rest of the minute from one wrong credential too many, for that address", () => {
  const throttle = new FailureThrottle(2, () => now);
  expect(["10.0.0.1", "10.0.0.1", "10.0.0.1"].map((each) => attempt(throttle, each))).toEqual([
    "counted",
    "counted",
    "429 60",
  ]);
  expect(attempt(throttle, "10.0.0.2")).toBe("counted");
  now += 59_500;
  expect(attempt(throttle, "10.0.0.1")).toBe("429 1");
  now += 500;
  expect(attempt(throttle, "10.0.0.1")).toBe("counted");
});

it("takes an IPv6 network of one owner for one address, and a mapped IPv4 address for itself", () => {
  const throttle = new FailureThrottle(1, () => now);
  attempt(throttle, "2001:db8:1:2::1");
  expect(attempt(throttle, "2001:db8:1:2:ffff:1:2:3")).toMatch(/^429/);
  expect(attempt(throttle, "2001:db8:1:3::1")).toBe("counted");
  attempt(throttle, "192.0.2.1");
  expect(attempt(throttle, "::ffff:192.0.2.1")).toMatch(/^429/);
  expect(attempt(throttle, "::1")).toBe("counted");
  expect(attempt(throttle, "fe80::1%eth0")).toBe("counted");
});

it("remembers a bounded number of addresses, however many there are", () => {
  const throttle = new FailureThrottle(1, () => now);
  for (let n = 0; n < 25_000; n++) attempt(throttle, `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  expect(throttle.size).toBeLessThanOrEqual(10_000);
  now += 60_000;
  attempt(throttle, "192.0.2.7");
  expect(throttle.size).toBe(1);
});

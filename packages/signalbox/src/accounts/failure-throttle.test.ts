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

it("refuses further wrong credentials of an address with 429 and the remaining seconds of the minute", () => {
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

it("counts an IPv6 /64 network as one address, and an IPv4-mapped address as IPv4", () => {
  const throttle = new FailureThrottle(1, () => now);
  attempt(throttle, "2001:db8:1:2::1");
  expect(attempt(throttle, "2001:db8:1:2:ffff:1:2:3")).toMatch(/^429/);
  expect(attempt(throttle, "2001:db8:1:3::1")).toBe("counted");
  attempt(throttle, "192.0.2.1");
  expect(attempt(throttle, "::ffff:192.0.2.1")).toMatch(/^429/);
  expect(attempt(throttle, "::1")).toBe("counted");
  expect(attempt(throttle, "fe80::1%eth0")).toBe("counted");
});

it("keeps a bounded number of addresses", () => {
  const throttle = new FailureThrottle(1, () => now);
  for (let n = 0; n < 25_000; n++) attempt(throttle, `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  expect(throttle.size).toBeLessThanOrEqual(10_000);
  now += 60_000;
  attempt(throttle, "192.0.2.7");
  expect(throttle.size).toBe(1);
});

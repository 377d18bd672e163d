import { expect, it } from "vitest";
import { isTimeZone } from "./time-zone.ts";

it("knows the names of time zones", () => {
  expect(["UTC", "Europe/Berlin", "Mars/Olympus", ""].map(isTimeZone)).toEqual([true, true, false, false]);
});

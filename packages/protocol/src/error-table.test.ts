import { expect, it } from "vitest";
import { ERROR_TABLE, type ErrorEntry } from "./error-table.ts";

const entries: [string, ErrorEntry][] = Object.entries(ERROR_TABLE);

it("has a unique code for every error of an area", () => {
  const codes = entries.map(([, { area, code }]) => `${area} ${code}`);
  expect(new Set(codes).size).toBe(codes.length);
});

it("has close codes that applications may use", () => {
  for (const [name, { closeCode }] of entries) {
    if (closeCode === undefined) continue;
    expect(
      [1007, 1008, 1009, 1011, 1012, 1013].includes(closeCode) || (closeCode >= 4000 && closeCode < 5000),
      name,
    ).toBe(true);
  }
});

it("closes a WebSocket with a code that says `later` for everything that passes by itself", () => {
  const ofAgents = entries.filter(([, { area, status }]) => area !== "gateway" && status === 503);
  expect(ofAgents.length).toBeGreaterThan(0);
  for (const [name, { closeCode }] of ofAgents) expect([1012, 1013], name).toContain(closeCode);
});

import { expect, it } from "vitest";
import { ERROR_TABLE, type ErrorEntry } from "./error-table.ts";

const entries: [string, ErrorEntry][] = Object.entries(ERROR_TABLE);

it("has a unique code for every error", () => {
  const codes = entries.map(([, entry]) => entry.code);
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

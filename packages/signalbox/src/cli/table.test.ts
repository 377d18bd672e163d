import fc from "fast-check";
import { expect, it } from "vitest";
import { rowLine, table, toCell } from "./table.ts";

it("aligns columns and writes titles in capitals", () => {
  const rows = [
    ["a", "1", ""],
    ["longer", "22", "x"],
  ];
  expect(table(["id", "count", "note"], rows, "none")).toBe(
    "ID      COUNT  NOTE\na       1\nlonger  22     x\n",
  );
});

it("prints the given text if there are no rows", () => {
  expect(table(["id"], [], "no tokens")).toBe("no tokens\n");
});

it("writes one line per row, without control characters", () => {
  const cell = fc.string({ unit: "binary" });
  fc.assert(
    fc.property(fc.array(fc.tuple(cell, cell), { minLength: 1 }), (rows) => {
      const lines = table(["a", "b"], rows, "").split("\n");
      expect(lines).toHaveLength(rows.length + 2);
      for (const line of [...lines, rowLine(rows[0] ?? []).slice(0, -1)]) expect(line).not.toMatch(/\p{Cc}/u);
    }),
  );
});

it("shows strings as they are and other values as JSON", () => {
  expect(["text", 1, null, { a: [1] }, undefined].map(toCell)).toEqual([
    "text",
    "1",
    "null",
    '{"a":[1]}',
    "",
  ]);
});

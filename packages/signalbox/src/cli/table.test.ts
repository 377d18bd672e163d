import fc from "fast-check";
import { expect, it } from "vitest";
import { cellWidth } from "./cell-width.ts";
import { renderWithin, rowLine, table, toCell } from "./table.ts";

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

it("aligns wide, combining and joined characters", () => {
  const rows = [
    ["日本", "x"],
    ["e\u0301", "x"],
    ["👩‍👩‍👧", "x"],
    ["\u200b", "x"],
  ];
  const [, ...lines] = table(["name", "n"], rows, "").trimEnd().split("\n");
  expect(lines).toEqual(["日本  x", "e\u0301     x", "👩‍👩‍👧    x", "\u200b      x"]);
});

it("shortens the widest columns to the terminal, but no id", () => {
  const id = "i".repeat(40);
  const rows = [[id, "日".repeat(40), "short"]];
  const render = () => table(["id", "text", "note"], rows, "");
  const [, line = ""] = renderWithin(70, render).split("\n");
  expect(line).toMatch(new RegExp(`^${id}  日{10}…? +short$`));
  expect(cellWidth(line)).toBeLessThanOrEqual(70);
  expect(render()).toContain("日".repeat(40));
  expect(renderWithin(20, render)).toContain(id);
});

it("a terminal shows how long ago something was, and anything else the time itself", () => {
  const at = new Date(Date.now() - 3 * 60_000 - 5000).toISOString();
  const render = () => table(["id", "created"], [["a", at]], "");
  expect(renderWithin(70, render)).toBe("ID  CREATED\na   3 min ago\n");
  expect(render()).toContain(at);
});

it("a narrow terminal leaves out the last columns, never ids, and says which", () => {
  const id = "i".repeat(26);
  const columns = ["time", "id", "status", "model", "prompt", "cost"];
  const rows = [["2 s ago", id, "200", "a-model-with-a-name", "p".repeat(40), "$0.000123"]];
  const shown = renderWithin(70, () => table(columns, rows, ""));
  expect(shown).toContain(`2 s ago  ${id}  200     a-model-w`);
  expect(shown.trimEnd().split("\n").at(-1)).toBe("(--wide also shows prompt, cost)");
  for (const line of shown.trimEnd().split("\n")) expect(cellWidth(line)).toBeLessThanOrEqual(70);
});

import { expect, it } from "vitest";
import { LookUps } from "./look-ups.ts";

const lookUps = new LookUps("c, d", "t", ["a", "b"]);

it("a list has one of a few lengths, filled up with its last key", () => {
  const [query] = lookUps.queries([7, "x", 7, "y", 7, "z"]);
  expect(query?.parts.join("?")).toBe(
    [0, 1, 2, 3]
      .map((place) => `SELECT ${place} AS place, c, d FROM t WHERE a = ? AND b = ?`)
      .join(" UNION ALL "),
  );
  expect(query?.values).toEqual([7, "x", 7, "y", 7, "z", 7, "z"]);
});

it("a long list is several statements, and an empty one none", () => {
  const queries = lookUps.queries(Array.from({ length: 130 }, (_, i) => [1, i]).flat());
  expect(queries.map(({ values }) => values.length / 2)).toEqual([64, 64, 2]);
  expect(lookUps.queries([])).toEqual([]);
});

it("lists of one length share their text, by which adapters keep prepared statements", () => {
  expect(lookUps.queries([1, "a"])[0]?.parts).toBe(lookUps.queries([2, "b"])[0]?.parts);
});

it("rows are found at the places of their keys", async () => {
  const keys = Array.from({ length: 70 }, (_, i) => [1, i]).flat();
  const all = async (query: { readonly values: readonly unknown[] }) =>
    query.values.flatMap((value, i) =>
      i % 2 === 1 && Number(value) % 3 === 0 ? [{ place: (i - 1) / 2, c: value }] : [],
    );
  const rows = await lookUps.find({ all } as never, keys);
  expect(rows.map((row) => (row as { c: number } | undefined)?.c)).toEqual(
    Array.from({ length: 70 }, (_, i) => (i % 3 === 0 ? i : undefined)),
  );
});

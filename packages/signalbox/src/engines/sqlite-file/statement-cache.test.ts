import { describe, expect, it } from "vitest";
import { rawSql, sql } from "../../core/sql.ts";
import { StatementCache, textOf } from "./prepared-statement.ts";

const constant = () => sql`SELECT ${1}`.parts;
const built = () => sql`SELECT ${1}${rawSql(" AS x")}`.parts;

describe("cached statements", () => {
  it("are found by the identity of a constant, or by the text", () => {
    const cache = new StatementCache<string>(10);
    expect([cache.get(constant()), cache.get(built())]).toEqual([undefined, undefined]);
    cache.set(constant(), "constant");
    cache.set(built(), "built");
    expect([cache.get(constant()), cache.get(built())]).toEqual(["constant", "built"]);
    cache.clear();
    expect([cache.get(constant()), cache.get(built())]).toEqual([undefined, undefined]);
  });

  it("are evicted, oldest first, beyond the maximum", () => {
    const cache = new StatementCache<number>(2);
    const parts = [1, 2, 3].map((n) => rawSql(`SELECT ${n}`).parts);
    parts.forEach((one, i) => cache.set(one, i));
    expect(parts.map((one) => cache.get(one))).toEqual([undefined, 1, 2]);
    const texts = [1, 2, 3].map((n) => [`SELECT ${n}`]);
    texts.forEach((one, i) => cache.set(one, i));
    expect(texts.map(([text = ""]) => cache.get([text]))).toEqual([undefined, 1, 2]);
  });

  it("have a placeholder for each value", () => {
    expect([textOf(constant()), textOf(built()), textOf(constant())]).toEqual([
      "SELECT ?",
      "SELECT ? AS x",
      "SELECT ?",
    ]);
  });
});

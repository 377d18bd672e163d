import { describe, expect, it } from "vitest";
import { rawSql, sql } from "../../core/sql.ts";
import { StatementCache, textOf } from "./prepared-statement.ts";

const constant = () => sql`SELECT ${1}`.parts;
const built = () => sql`SELECT ${1}${rawSql(" AS x")}`.parts;

/** Adds a statement as its second use does. */
function keep<T>(cache: StatementCache<T>, parts: readonly string[], statement: T): void {
  cache.set(parts, statement);
  cache.set(parts, statement);
}

describe("cached statements", () => {
  it("are found by the identity of a constant, or by the text", () => {
    const cache = new StatementCache<string>(10);
    expect([cache.get(constant()), cache.get(built())]).toEqual([undefined, undefined]);
    keep(cache, constant(), "constant");
    keep(cache, built(), "built");
    expect([cache.get(constant()), cache.get(built())]).toEqual(["constant", "built"]);
    cache.clear();
    expect([cache.get(constant()), cache.get(built())]).toEqual([undefined, undefined]);
  });

  it("are kept from their second use on", () => {
    const cache = new StatementCache<string>(10);
    cache.set(built(), "first");
    expect(cache.get(built())).toBeUndefined();
    cache.set(built(), "second");
    expect(cache.get(built())).toBe("second");
  });

  it("are evicted, oldest first, beyond the maximum", () => {
    const cache = new StatementCache<number>(2);
    const parts = [1, 2, 3].map((n) => rawSql(`SELECT ${n}`).parts);
    parts.forEach((one, i) => keep(cache, one, i));
    expect(parts.map((one) => cache.get(one))).toEqual([undefined, 1, 2]);
    const texts = [1, 2, 3].map((n) => [`SELECT ${n} + 1`]);
    texts.forEach((one, i) => keep(cache, one, i));
    expect(texts.map(([text = ""]) => cache.get([text]))).toEqual([undefined, 1, 2]);
  });

  it("of texts that are never repeated are forgotten", () => {
    const cache = new StatementCache<number>(1);
    cache.set(["SELECT 0"], 0);
    for (let n = 1; n <= 4; n += 1) cache.set([`SELECT ${n}`], n);
    cache.set(["SELECT 0"], 0);
    expect(cache.get(["SELECT 0"])).toBeUndefined();
  });

  it("have a placeholder for each value", () => {
    expect([textOf(constant()), textOf(built()), textOf(constant())]).toEqual([
      "SELECT ?",
      "SELECT ? AS x",
      "SELECT ?",
    ]);
  });
});

/** Searching without regard to case, on both databases. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../test/support/engines.ts";
import { containsInPostgres, containsInSqlite } from "./any-case.ts";
import { sql } from "./sql.ts";

describe.each(ENGINES)("on %s", (engine, open) => {
  let opened: OpenedDatabase;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(async () => {
    await opened.database.close();
    await opened.drop();
  });

  const contains = engine === "sqlite" ? containsInSqlite : containsInPostgres;
  const finds = async (text: string, part: string): Promise<boolean> => {
    const found = await opened.database.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM (SELECT CAST(${text} AS TEXT) AS name) AS t WHERE ${contains(sql`name`, part)}`,
    );
    return Number(found?.n) === 1;
  };

  it.each([
    ["éa", "É"],
    ["Éa", "é"],
    ["ÉéÉ", "éÉé"],
    ["Москва", "МОСКВА"],
    ["ΣΟΦΙΑ", "σοφια"],
    ["x[é]*?%_\\.^$(|)+{}-", "X[É]*?%_\\.^$(|)+{}-"],
    ["𐐀", "𐐨"],
    ["abc", "B"],
  ])("%s contains %s", async (text, part) => expect(await finds(text, part)).toBe(true));

  it.each([
    ["éa", "e"],
    ["aéc", "é*c"],
    ["aéxc", "é?c"],
    ["aéc", "é.$"],
    ["aé", "[é]"],
    ["a_c", "é"],
  ])("%s does not contain %s", async (text, part) => expect(await finds(text, part)).toBe(false));

  it("a text is found inside of another one in any case, whatever characters it has", async () => {
    const characters = fc.string({
      unit: fc.constantFrom(..."aBéÉßжЖ*?[]^-\\%_.$(|)+{}!".split("")),
      minLength: 1,
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(characters, characters, fc.boolean(), async (before, part, isUpper) => {
        const other = Array.from(part, (one) => {
          const changed = isUpper ? one.toUpperCase() : one.toLowerCase();
          return changed.length === one.length ? changed : one;
        }).join("");
        expect(await finds(`${before}${part}${before}`, other)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });
});

/** Pages of instances on both database engines. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../../test/support/engines.ts";
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import { INSTANCE_ORDERS, INSTANCE_PROBLEMS, InstancePages, type PageQuery } from "./instance-pages.ts";

const NOW = 1_800_000_000_000;

/** Every read outside of a scan fails. */
function onlyScans(database: Database): Database {
  const refuse = () => Promise.reject(new Error("read on the thread of the event loop"));
  return {
    engine: database.engine,
    problem: null,
    all: refuse,
    get: refuse,
    run: refuse,
    transaction: refuse,
    scan: (query, turn) => database.scan(query, turn),
    close: () => Promise.resolve(),
  };
}

describe.each(ENGINES)("on %s", (_engine, open) => {
  let opened: OpenedDatabase;
  let pages: InstancePages;

  beforeAll(async () => {
    opened = await open();
    for (let i = 0; i < 12; i++)
      await opened.database.run(
        sql`INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, queued, retrying, dead_letters, last_error_at)
            VALUES (${"x"}, ${"a"}, ${`n-${i}`}, 0, ${NOW - (i % 4)}, ${i % 3}, ${i === 5 ? 1 : 0}, ${i > 9 ? i : 0},
              ${i === 7 ? NOW : null})`,
      );
    pages = new InstancePages(onlyScans(opened.database));
  });
  afterAll(async () => {
    await opened.database.close();
    await opened.drop();
  });

  const query = { account: "x", agent: "a", stuck: [], order: "name", limit: 5 } as const;
  const listed = async (changes: Partial<PageQuery>): Promise<string[]> => {
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await pages.page({ ...query, ...changes, cursor });
      names.push(...page.entries.map(({ name }) => name));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    return names;
  };
  /** Large values first, then by name as the database compares it. */
  const sorted = (valueOf: (i: number) => number): string[] =>
    Array.from({ length: 12 }, (_, i) => ({ name: `n-${i}`, value: valueOf(i) }))
      .toSorted((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1))
      .map(({ name }) => name);

  it.each([1, 2, 5, 100])("each order lists every instance once, in pages of %i", async (limit) => {
    expect(await listed({ limit })).toEqual(Array.from({ length: 12 }, (_, i) => `n-${i}`));
    expect(await listed({ limit, order: "queued" })).toEqual(sorted((i) => i % 3));
    expect(await listed({ limit, order: "dead_letters" })).toEqual(sorted((i) => (i > 9 ? i : 0)));
    expect(await listed({ limit, order: "last_active" })).toEqual(sorted((i) => -(i % 4)));
  });

  it("each problem, any of them, and a search are found in each order", async () => {
    const expected = {
      dead_letters: [10, 11],
      retrying: [5],
      error: [7],
      stuck: [2, 5],
      any: [2, 5, 7, 10, 11],
    };
    for (const order of INSTANCE_ORDERS)
      for (const problem of [...INSTANCE_PROBLEMS, "any"] as const) {
        const rule = { problem, since: NOW - 1 };
        const names = await listed({ order, rule, stuck: ["n-2", "n-5"], limit: 2 });
        expect(names.toSorted(), `${order}, ${problem}`).toEqual(
          expected[problem].map((i) => `n-${i}`).toSorted(),
        );
        const searched = await listed({ order, rule, stuck: ["n-2", "n-5"], search: "N-1" });
        expect(searched.toSorted()).toEqual(names.filter((name) => name.startsWith("n-1")).toSorted());
      }
  });
});

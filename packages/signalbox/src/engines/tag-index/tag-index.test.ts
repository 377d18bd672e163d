/** The index on an SQLite database in memory, compared with a naive model. README.md numbers the promises. */
import { readFileSync } from "node:fs";
import { foldCase, matchesTags, type TagFilter, type Tags } from "@signalbox/protocol";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Queryable } from "../../core/queryable.ts";
import { rawSql, sql, SqlQuery } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";
import { fromStoredText } from "./dictionary.ts";
import {
  deleteUnusedTags,
  IndexDelta,
  type PositiveTagFilter,
  type ResourceQuery,
  Selection,
} from "./index.ts";

const MIGRATION = new URL("../../database/migrations/0004-tags.sql", import.meta.url);
/** Low, so that random data has values with postings, values with bitmaps, and values that change from one to the other. */
const BITMAP_MIN_USES = 3;
/** Resource numbers at the borders of chunks and far apart, the last one in chunk 12. */
const NUMBERS = [0, 1, 2, 16_382, 16_383, 16_384, 16_385, 32_767, 40_000, 49_152, 65_535, 200_000];
const TYPES = ["worker", "agent", "queue"];
const NAMES = ["Alpha", "beta", "100%_x", "ALPHABET"];
const NO_TAGS: Tags = new Map();
const EVERYTHING: ResourceQuery = { filters: [], isCaseInsensitive: false, types: [], ids: [], name: null };

let connection: SqliteConnection;
let database: Queryable;
beforeAll(() => {
  connection = SqliteConnection.open(":memory:");
  connection.exec(readFileSync(MIGRATION, "utf8"));
  database = {
    all: async (query) => connection.all(query),
    get: async (query) => connection.get(query),
    run: async (query) => connection.run(query),
  };
});
afterAll(() => connection.close());

interface Change {
  /** Position in `NUMBERS`; it also determines type, id and name. */
  readonly at: number;
  /** The new tags; none deletes them. */
  readonly tags: Tags;
}

const typeOf = (at: number) => TYPES[at % TYPES.length] ?? "";
const nameOf = (at: number) => NAMES[at % NAMES.length] ?? "";
const idOf = (at: number) => `r${at}`;

let accounts = 0;

/** An account of its own with one row per resource, and the tags that each resource should have. */
class Fixture {
  readonly accountNo = ++accounts;
  readonly tags: Tags[] = NUMBERS.map(() => NO_TAGS);
  readonly #counters = { nextKey: 1, nextValue: 1 };

  async createResources(): Promise<void> {
    for (const [at, resourceNo] of NUMBERS.entries()) {
      await database.run(
        sql`INSERT INTO tag_resource (account_no, resource_no, type, id, zone_id, parent_id, name, name_folded, tags, etag, updated_at)
            VALUES (${this.accountNo}, ${resourceNo}, ${typeOf(at)}, ${idOf(at)}, '', '', ${nameOf(at)}, ${foldCase(nameOf(at))}, NULL, '', 0)`,
      );
    }
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const delta = new IndexDelta(database, this.accountNo, this.#counters, BITMAP_MIN_USES);
    for (const { at, tags } of changes) {
      delta.change(NUMBERS[at] ?? 0, typeOf(at), this.tags[at] ?? NO_TAGS, tags);
      this.tags[at] = tags;
    }
    await delta.flush();
  }

  select(query: ResourceQuery, exact: PositiveTagFilter | null = null): Promise<Selection> {
    const account = { accountNo: this.accountNo, lastResource: NUMBERS.at(-1) ?? 0 };
    return Selection.of(database, account, query, { exact });
  }

  /** The expected resource numbers. */
  matching(query: ResourceQuery, exact: PositiveTagFilter | null = null): number[] {
    return NUMBERS.filter((_, at) => {
      const tags = this.tags[at] ?? NO_TAGS;
      return (
        tags.size > 0 &&
        matchesTags(query.filters, tags, query.isCaseInsensitive) &&
        (exact === null || matchesTags([exact], tags)) &&
        (query.types.length === 0 || query.types.includes(typeOf(at))) &&
        (query.ids.length === 0 || query.ids.includes(idOf(at))) &&
        (query.name === null || foldCase(nameOf(at)).includes(foldCase(query.name)))
      );
    });
  }

  /** The number of resources with each `key=value`, and with each `key=value` and type. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const [at, tags] of this.tags.entries()) {
      for (const [key, value] of tags) {
        for (const name of [`${key}=${value}`, `${key}=${value} of ${typeOf(at)}`]) {
          counts[name] = (counts[name] ?? 0) + 1;
        }
      }
    }
    return counts;
  }

  async storedCounts(): Promise<Record<string, number>> {
    interface Row {
      readonly key: Uint8Array;
      readonly value: Uint8Array;
      readonly type: Uint8Array | null;
      readonly uses: number;
    }
    const rows = await database.all<Row>(
      sql`SELECT k.sort_key AS key, v.sort_key AS value, NULL AS type, v.uses
            FROM tag_value v JOIN tag_key k USING (account_no, key_no)
            WHERE v.account_no = ${this.accountNo} AND v.key_no <> 0 AND v.uses > 0
          UNION ALL
          SELECT k.sort_key, v.sort_key, t.sort_key, u.uses
            FROM tag_value_type u JOIN tag_key k USING (account_no, key_no)
              JOIN tag_value v ON v.account_no = u.account_no AND v.key_no = u.key_no AND v.value_no = u.value_no
              JOIN tag_value t ON t.account_no = ${this.accountNo} AND t.key_no = 0 AND t.value_no = u.type_no
            WHERE u.account_no = ${this.accountNo} AND u.uses > 0`,
    );
    return Object.fromEntries(
      rows.map(({ key, value, type, uses }) => {
        const tag = `${textOf(key)}=${textOf(value)}`;
        return [type === null ? tag : `${tag} of ${textOf(type)}`, uses];
      }),
    );
  }
}

function textOf(sortKey: Uint8Array): string {
  return fromStoredText({ sort_key: sortKey, full_text: null });
}

async function createFixture(): Promise<Fixture> {
  const fixture = new Fixture();
  await fixture.createResources();
  return fixture;
}

/** Reads all pages. */
async function readPages(selection: Selection, limit: number): Promise<number[]> {
  const numbers: number[] = [];
  for (let after = -1; ;) {
    const page = await selection.page(after, limit);
    numbers.push(...page);
    const last = page.at(-1);
    if (page.length < limit || last === undefined) return numbers;
    after = last;
  }
}

// Few keys and values, some of which differ only in case, so that changes overlap and filters match.
const key = fc.constantFrom("env", "Env", "team", "ключ", "__proto__");
const value = fc.constantFrom("", "prod", "PROD", "é", "É");
const tags = fc.array(fc.tuple(key, value), { maxLength: 4 }).map((entries): Tags => new Map(entries));
const batch = fc.array(fc.record({ at: fc.nat(NUMBERS.length - 1), tags }), { maxLength: 25 });
const values = fc.array(value, { minLength: 1, maxLength: 3 });
const positiveFilter: fc.Arbitrary<PositiveTagFilter> = fc.oneof(
  key.map((key): PositiveTagFilter => ({ kind: "has", key })),
  fc.tuple(key, values).map(([key, values]): PositiveTagFilter => ({ kind: "in", key, values })),
);
const filter: fc.Arbitrary<TagFilter> = fc.oneof(
  { weight: 2, arbitrary: positiveFilter },
  key.map((key): TagFilter => ({ kind: "lacks", key })),
  fc.tuple(key, values).map(([key, values]): TagFilter => ({ kind: "not_in", key, values })),
);
const optional = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });
const query: fc.Arbitrary<ResourceQuery> = fc.record({
  filters: fc.array(filter, { maxLength: 3 }),
  isCaseInsensitive: fc.boolean(),
  types: optional<string[]>([], fc.array(fc.constantFrom(...TYPES, "unused"), { maxLength: 2 })),
  ids: optional<string[]>([], fc.array(fc.nat(NUMBERS.length).map(idOf), { maxLength: 6 })),
  name: optional<string | null>(null, fc.constantFrom("alpha", "BET", "%", "_x", "zz")),
});

describe("the tag index", () => {
  it("returns the pages and totals of a naive evaluation, from postings and from bitmaps", async () => {
    const property = fc.asyncProperty(
      fc.array(batch, { minLength: 1, maxLength: 3 }),
      fc.array(fc.tuple(query, fc.option(positiveFilter), fc.integer({ min: 1, max: 5 })), { minLength: 4 }),
      async (batches, queries) => {
        const fixture = await createFixture();
        for (const changes of batches) await fixture.apply(changes);
        expect(await fixture.storedCounts()).toEqual(fixture.counts());
        for (const [query, exact, limit] of queries) {
          const selection = await fixture.select(query, exact);
          const expected = fixture.matching(query, exact);
          expect(await readPages(selection, limit)).toEqual(expected);
          expect(await selection.total()).toBe(expected.length);
        }
      },
    );
    await fc.assert(property, { numRuns: 80 });
    const stored = await database.get<{ postings: number; bitmaps: number }>(
      sql`SELECT SUM(has_bitmap = 0) AS postings, SUM(has_bitmap = 1) AS bitmaps FROM tag_value WHERE key_no <> 0`,
    );
    expect(stored?.postings).toBeGreaterThan(0);
    expect(stored?.bitmaps).toBeGreaterThan(0);
  });

  it("finds an unchanged resource exactly once while other resources change (promise 3)", async () => {
    const property = fc.asyncProperty(batch, batch, query, async (first, second, query) => {
      const fixture = await createFixture();
      await fixture.apply(first);
      const selection = await fixture.select(query);
      const expected = fixture.matching(query);
      const [head = -1] = await selection.page(-1, 1);
      await fixture.apply(second);
      const changed = new Set(second.map(({ at }) => NUMBERS[at]));
      const found = [head, ...(await readPages(selection, 2)).filter((number) => number > head)];
      const unchanged = (numbers: readonly number[]) =>
        numbers.filter((number) => number !== -1 && !changed.has(number));
      expect(unchanged(found)).toEqual(unchanged(expected));
    });
    await fc.assert(property, { numRuns: 60 });
  });

  it("reads one chunk of a set for a first page, and many with one statement for a total (promise 2)", async () => {
    const fixture = await createFixture();
    const everywhere: Tags = new Map([
      ["env", "prod"],
      ["team", "a"],
    ]);
    await fixture.apply(NUMBERS.map((_, at) => ({ at, tags: everywhere })));
    const query: ResourceQuery = {
      ...EVERYTHING,
      filters: [
        { kind: "in", key: "env", values: ["prod"] },
        { kind: "has", key: "team" },
      ],
    };
    const reads: number[] = [];
    const counting: Queryable = {
      ...database,
      all: async (statement) => {
        const rows = await database.all(statement);
        if (statement.parts.join("").includes("tag_bitmap")) reads.push(rows.length);
        return rows as never[];
      },
    };
    const account = { accountNo: fixture.accountNo, lastResource: NUMBERS.at(-1) ?? 0 };
    const selection = await Selection.of(counting, account, query);
    expect(await selection.page(-1, 2)).toEqual([0, 1]);
    // One chunk of each of the two sets.
    expect(reads.splice(0)).toEqual([1, 1]);
    expect(await selection.total()).toBe(NUMBERS.length);
    // Thirteen chunks, of which the last one is far from the others.
    expect(reads.length).toBeLessThanOrEqual(8);
  });

  it("an evaluation waits for its turn before it reads, and ends when its caller has left", async () => {
    const fixture = await createFixture();
    const prod: Tags = new Map([["env", "prod"]]);
    await fixture.apply([0, 1, 2].map((at) => ({ at, tags: prod })));
    const query: ResourceQuery = {
      ...EVERYTHING,
      filters: [{ kind: "in", key: "env", values: ["prod"] }],
      name: nameOf(1),
    };
    const account = { accountNo: fixture.accountNo, lastResource: NUMBERS.at(-1) ?? 0 };
    const begins: (() => void)[] = [];
    const caller = new AbortController();
    const select = () =>
      Selection.of(database, account, query, {
        turn: () => new Promise((resolve) => begins.push(resolve)),
        signal: caller.signal,
      });
    const expected = fixture.matching(query);
    const [first, second] = [(await select()).total(), (await select()).page(-1, 10)];
    await expect.poll(() => begins.length).toBe(2);
    for (const begin of begins.splice(0)) begin();
    expect(await first).toBe(expected.length);
    expect(await second).toEqual(expected);
    const left = (await select()).page(-1, 10);
    await expect.poll(() => begins.length).toBe(1);
    caller.abort();
    begins[0]?.();
    expect(await left).toEqual([]);
  });

  it("keeps the bitmaps of a value that is no longer frequent", async () => {
    const fixture = await createFixture();
    const prod: Tags = new Map([["env", "prod"]]);
    await fixture.apply([0, 1, 2].map((at) => ({ at, tags: prod })));
    await fixture.apply([1, 2].map((at) => ({ at, tags: NO_TAGS })));
    const row = await database.get<{ uses: number; has_bitmap: number }>(
      sql`SELECT uses, has_bitmap FROM tag_value WHERE account_no = ${fixture.accountNo} AND key_no <> 0`,
    );
    expect({ ...row }).toEqual({ uses: 1, has_bitmap: 1 });
    await fixture.apply([{ at: 11, tags: prod }]);
    const selection = await fixture.select({
      ...EVERYTHING,
      filters: [{ kind: "in", key: "env", values: ["prod"] }],
    });
    expect(await readPages(selection, 1)).toEqual([0, 200_000]);
  });

  it("cancels out changes of one batch that restore the tags", async () => {
    const fixture = await createFixture();
    const prod: Tags = new Map([["env", "prod"]]);
    await fixture.apply([{ at: 3, tags: prod }]);
    await fixture.apply([
      { at: 3, tags: NO_TAGS },
      { at: 3, tags: prod },
      { at: 4, tags: prod },
      { at: 4, tags: NO_TAGS },
    ]);
    expect(await fixture.storedCounts()).toEqual({ "env=prod": 1, "env=prod of worker": 1 });
    expect(await readPages(await fixture.select(EVERYTHING), 10)).toEqual([16_382]);
  });

  it("deletes the keys and values that no resource has, with all of their rows", async () => {
    const fixture = await createFixture();
    const unused: Tags = new Map([["env", "prod"]]);
    const kept: Tags = new Map([["team", "a"]]);
    await fixture.apply([0, 1, 2, 3].map((at) => ({ at, tags: unused })));
    await fixture.apply([0, 1, 2, 3].map((at) => ({ at, tags: at === 0 ? kept : NO_TAGS })));
    await deleteUnusedTags(database, fixture.accountNo, [...unused, ...kept]);
    for (const table of ["tag_key", "tag_value", "tag_value_type", "tag_posting", "tag_bitmap"]) {
      const rows = await database.all<{ key_no: number }>(
        rawSql(
          `SELECT key_no FROM ${table} WHERE account_no = ${fixture.accountNo} AND key_no <> 0 AND key_no <> 2`,
        ),
      );
      expect(rows).toEqual([]);
    }
    expect(await fixture.storedCounts()).toEqual({ "team=a": 1, "team=a of worker": 1 });
  });
});

it("a batch finds the keys, values and chunks that it changes by their whole keys, and reads no others", async () => {
  const fixture = new Fixture();
  await fixture.createResources();
  const queries: SqlQuery[] = [];
  const { all } = database;
  database.all = (query) => {
    queries.push(query);
    return all(query);
  };
  const batch = (env: string, prefix: string) =>
    NUMBERS.map((_, at) => ({ at, tags: new Map(Object.entries({ env, a: `${prefix}${at}`, b: prefix })) }));
  await fixture.apply(batch("prod", "v"));
  // The values of the first batch that all resources have, have bitmaps.
  await fixture.apply(batch("test", "w"));
  database.all = all;
  const details = queries.flatMap(({ parts: [first = "", ...rest], values }) =>
    connection
      .all<{ detail: string }>(new SqlQuery([`EXPLAIN QUERY PLAN ${first}`, ...rest], values))
      .map(({ detail }) => detail),
  );
  const reads = details.filter((detail) => /^(?:SEARCH|SCAN) tag_(?:key|value|bitmap)\b/.test(detail));
  expect(new Set(reads.map((read) => read.split(" ")[1]))).toEqual(
    new Set(["tag_key", "tag_value", "tag_bitmap"]),
  );
  for (const read of reads) expect(read).toMatch(/\(account_no=\? AND .*(?:sort_key|chunk_no)=\?\)$/);
});

/** The list of what the tag store does, run on every database engine. `openDatabase` gives a fresh, migrated database each time. */
import { canonicalTags, formatTagFilter, matchesTags, parseTagFilters } from "@signalbox/protocol";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../database/database.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { parseIfMatch } from "./tag-write.ts";
import { AccountNumbers } from "./account-numbers.ts";
import { ChangeLog } from "./change-log.ts";
import { ResourceCache } from "./resource-cache.ts";
import type { ResourceQuery } from "../../engines/tag-index/selection.ts";
import { FilteredVocabulary } from "./filtered-vocabulary.ts";
import { TagReader } from "./tag-reader.ts";
import { queriesArbitrary, TagModel, writesArbitrary } from "./tag-store-model.ts";
import { resourceText } from "../show-resource.ts";
import { TagVocabulary, type VocabularyEntry } from "./tag-vocabulary.ts";
import type { TagWrite } from "./tag-write.ts";
import { TagWriter } from "./tag-writer.ts";

export interface ContractEngine {
  open(): Promise<Database>;
  /** Random data sets of the property; fewer on an engine where each costs a database. */
  readonly runs: number;
  /** Resources of the large data set (twice as many in all); enough to make some values frequent. */
  readonly resources: number;
}

interface Store {
  readonly database: Database;
  readonly reader: TagReader;
  readonly writer: TagWriter;
  readonly words: TagVocabulary;
  readonly log: ChangeLog;
  readonly clock: { time: number };
}

const A = "acct";
/** Thousands of evaluations on a real database, on a machine that may be busy. */
const PROPERTY_TIMEOUT_MS = 180_000;

const ALL_WORDS = { prefix: "", after: null, limit: 100 };
const NEVER = new AbortController().signal;

function countsOf(words: readonly VocabularyEntry[]): Record<string, number> {
  return Object.fromEntries(words.map(({ text, uses }) => [text, uses]));
}

function buildStore(database: Database, bitmapMinUses?: number): Store {
  const clock = { time: 1_000_000 };
  const readClock: Clock = { now: () => clock.time };
  const accounts = new AccountNumbers(database);
  const log = new ChangeLog(database, readClock, accounts, { maxAgeMs: 1000, maxChanges: 50 });
  const cache = new ResourceCache();
  const writer = new TagWriter(database, readClock, accounts, {
    maxTagsPerResource: 100,
    ...(bitmapMinUses === undefined ? {} : { bitmapMinUses }),
    cache,
    changes: log,
  });
  return {
    database,
    reader: new TagReader(database, accounts, cache, resourceText),
    writer,
    words: new TagVocabulary(database, accounts),
    log,
    clock,
  };
}

function write(id: string, tags: Record<string, string | null>, rest: Partial<TagWrite> = {}): TagWrite {
  return {
    action: "set",
    resource: { type: "worker", id, zoneId: "", parentId: "" },
    tags: new Map(Object.entries(tags)),
    condition: null,
    actor: "root",
    ...rest,
  };
}

function query(tags: readonly string[], rest: Partial<ResourceQuery> = {}): ResourceQuery {
  return {
    filters: parseTagFilters(tags),
    isCaseInsensitive: false,
    types: [],
    ids: [],
    name: null,
    ...rest,
  };
}

/** Half a dozen overlapping sets of very different sizes. */
function sampleTags(i: number, seed: number): Record<string, string> {
  return {
    env: (i * seed) % 3 === 0 ? "prod" : "dev",
    [`k${i % 2}`]: `v${(i * seed) % 1500}`,
    half: i % 2 === 0 ? "yes" : "no",
  };
}

async function idsOf(store: Store, wanted: ResourceQuery, account = A): Promise<string[]> {
  const ids: string[] = [];
  for (let after = -1; ;) {
    const page = await store.reader.list(account, wanted, after, 7);
    ids.push(...page.resources.map((resource) => resource.id));
    if (page.next === null) return ids;
    after = page.next;
  }
}

export function describeTagStore(name: string, engine: ContractEngine): void {
  const withStore = async (work: (store: Store) => Promise<void>, bitmapMinUses?: number) => {
    const database = await engine.open();
    try {
      await work(buildStore(database, bitmapMinUses));
    } finally {
      await database.close();
    }
  };

  describe(`tag store on ${name}`, () => {
    // Once from postings alone, and once with bitmaps for whatever is used three times.
    it.each([undefined, 3])(
      "finds by index exactly what a naive evaluation finds, after random writes (bitmaps from %s uses)",
      (bitmapMinUses) =>
        withStore(async (store) => {
          let round = 0;
          const property = fc.asyncProperty(writesArbitrary, queriesArbitrary, async (writes, queries) => {
            const account = `a${round++}`;
            const model = new TagModel();
            for (const [i, batch] of [writes.slice(0, 1), writes.slice(1, 8), writes.slice(8)].entries()) {
              await Promise.all(batch.map((each) => store.writer.write(account, each)));
              for (const each of batch) model.apply(each);
              for (const wanted of i === 0 ? [] : queries) {
                const expected = model.find(wanted);
                expect(await idsOf(store, wanted, account)).toEqual(expected);
                expect(await store.reader.total(account, wanted)).toBe(expected.length);
                for (const maxRead of [1, 1000]) {
                  const words = new FilteredVocabulary(store.words, store.reader, wanted, NEVER, maxRead);
                  expect(countsOf(await words.keys(account, ALL_WORDS))).toEqual(model.countWords(wanted));
                  expect(countsOf(await words.values(account, "env", null, ALL_WORDS))).toEqual(
                    model.countWords(wanted, "env"),
                  );
                }
              }
            }
            expect(countsOf(await store.words.keys(account, ALL_WORDS))).toEqual(model.countWords(query([])));
          });
          await fc.assert(property, { numRuns: engine.runs });
        }, bitmapMinUses),
      PROPERTY_TIMEOUT_MS,
    );

    it("keeps sets right when values become frequent, shrink again and are spread over several chunks", () =>
      withStore(async (store) => {
        const count = engine.resources;
        const model = new Map<string, Record<string, string>>();
        const load = Array.from({ length: count }, (_, i) => write(`r${i}`, sampleTags(i, 1)));
        await store.writer.load(A, load);
        // Resource numbers far apart, as they are after years of coming and going.
        await store.database.run(sql`UPDATE tag_account SET next_resource = ${200_000}`);
        await store.writer.load(
          A,
          Array.from({ length: count }, (_, i) => write(`s${i}`, sampleTags(i, 1))),
        );
        for (let i = 0; i < count; i++) {
          model.set(`r${i}`, sampleTags(i, 1));
          model.set(`s${i}`, sampleTags(i, 1));
        }
        const changes: TagWrite[] = [];
        for (let i = 0; i < count; i += 3) {
          changes.push(write(`r${i}`, sampleTags(i, 7)));
          model.set(`r${i}`, sampleTags(i, 7));
        }
        for (let i = 0; i < count; i += 2) {
          changes.push(write(`s${i}`, {}, { action: "delete" }));
          model.delete(`s${i}`);
        }
        await store.writer.load(A, changes);
        for (const text of [
          ["env=prod"],
          ["env=prod", "half=yes"],
          ["!k0"],
          ["k1", "env!=prod"],
          ["k0=v0,v2,v4", "half=yes"],
          ["half=no", "k0"],
          ["env!=prod,dev"],
          [],
        ]) {
          const wanted = query(text);
          const expected = [...model].filter(([, tags]) =>
            matchesTags(wanted.filters, new Map(Object.entries(tags))),
          ).length;
          expect(await store.reader.total(A, wanted)).toBe(expected);
          const page = await store.reader.list(A, wanted, 150_000, 100);
          expect(page.resources.every((resource) => model.has(resource.id))).toBe(true);
          expect(page.resources.length).toBe(Math.min(100, page.resources.length));
        }
        const values = await store.words.values(A, "env", null, { prefix: "", after: null, limit: 100 });
        for (const { text, uses } of values) {
          expect(uses).toBe([...model.values()].filter((tags) => tags["env"] === text).length);
        }
      }));

    it("lets the second of two writers with the same etag fail and never mixes their sets", () =>
      withStore(async (store) => {
        const first = await store.writer.write(A, write("x", { a: "1" }));
        const etag = first.kind === "stored" ? first.resource.etag : "";
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            store.writer.write(A, write("x", { a: `w${i}`, b: `w${i}` }, { condition: parseIfMatch(etag) })),
          ),
        );
        expect(outcomes.filter((outcome) => outcome.kind === "stored")).toHaveLength(1);
        expect(outcomes.filter((outcome) => outcome.kind === "refused")).toHaveLength(19);
        expect((await store.reader.find(A, write("x", {}).resource))?.tags).toBe('{"a":"w0","b":"w0"}');
      }));

    it("shows a page that is walked while others write every untouched resource exactly once", () =>
      withStore(async (store) => {
        await store.writer.load(
          A,
          Array.from({ length: 400 }, (_, i) => write(`r${i}`, { env: "prod" })),
        );
        const seen: string[] = [];
        for (let after = -1, step = 0; ; step++) {
          const page = await store.reader.list(A, query(["env=prod"]), after, 20);
          seen.push(...page.resources.map((resource) => resource.id));
          // Odd ones come and go, among them some already shown.
          await store.writer.write(A, write(`r${step * 10 + 1}`, {}, { action: "delete" }));
          await store.writer.write(A, write(`r${step * 10 + 1}`, { env: "prod" }));
          await store.writer.write(A, write(`r${400 - step * 2 - 1}`, { env: "dev" }));
          if (page.next === null) break;
          after = page.next;
        }
        expect(new Set(seen).size).toBe(seen.length);
        for (let i = 0; i < 400; i += 2) expect(seen).toContain(`r${i}`);
      }));

    it("remembers who changed what, prunes by number and tells late readers", () =>
      withStore(async (store) => {
        for (let i = 0; i < 80; i++)
          await store.writer.write(A, write("x", { n: String(i) }, { actor: `token:${i}` }));
        await store.writer.write(A, write("x", {}, { action: "delete", actor: "root" }));
        const resource = write("x", {}).resource;
        const newest = await store.log.history(A, resource, null, 2);
        expect(newest.map(({ action, actor, before, after }) => ({ action, actor, before, after }))).toEqual([
          { action: "delete", actor: "root", before: { n: "79" }, after: null },
          { action: "set", actor: "token:79", before: { n: "78" }, after: { n: "79" } },
        ]);
        await store.log.prune(new AbortController().signal);
        expect(await store.log.history(A, resource, null, 100)).toHaveLength(50);
        await expect(store.log.changes(A, 0, 10)).rejects.toMatchObject({ code: 1018 });
        const oldest = await store.log.oldestPosition(A);
        expect((await store.log.changes(A, oldest, 100)).map((change) => change.position)).toEqual(
          Array.from({ length: 50 }, (_, i) => oldest + 1 + i),
        );
        // Values whose last use is out of the history are forgotten, and so is the deleted resource in the end.
        const values = () =>
          store.database.all<{ n: number }>(sql`SELECT COUNT(*) AS n FROM tag_value WHERE key_no <> 0`);
        expect(Number((await values())[0]?.n)).toBeLessThan(60);
        store.clock.time += 2000;
        await store.log.prune(new AbortController().signal);
        expect(Number((await values())[0]?.n)).toBe(0);
        expect(await store.database.all(sql`SELECT 1 FROM tag_resource`)).toEqual([]);
        expect(await store.database.all(sql`SELECT 1 FROM tag_key WHERE key_no <> 0`)).toEqual([]);
        expect(await store.database.all(sql`SELECT 1 FROM tag_posting`)).toEqual([]);
      }));

    it("leaves nothing of a value that was frequent once and is used no more", () =>
      withStore(async (store) => {
        for (let i = 0; i < 9; i++) await store.writer.write(A, write(`r${i}`, { env: "prod" }));
        expect(await store.reader.total(A, query(["env=prod"]))).toBe(9);
        for (let i = 0; i < 9; i++) await store.writer.write(A, write(`r${i}`, {}, { action: "delete" }));
        expect(await store.reader.total(A, query(["env=prod"]))).toBe(0);
        store.clock.time += 2000;
        await store.log.prune(new AbortController().signal);
        for (const table of ["tag_value", "tag_key", "tag_posting", "tag_bitmap"]) {
          expect(await store.database.all(rawSql(`SELECT 1 FROM ${table} WHERE key_no <> 0`))).toEqual([]);
        }
      }, 3));

    it("hands followers every change once, in order, from a position on, and ends with the signal", () =>
      withStore(async (store) => {
        await store.writer.write(A, write("x", { n: "0" }));
        const abort = new AbortController();
        const seen: string[] = [];
        const following = (async () => {
          for await (const change of store.log.follow(A, 1, abort.signal)) {
            seen.push(change.after?.["n"] ?? "");
            if (seen.length === 40) abort.abort();
          }
        })();
        for (let i = 1; i <= 40; i++) await store.writer.write(A, write("x", { n: String(i) }));
        await following;
        expect(seen).toEqual(Array.from({ length: 40 }, (_, i) => String(i + 1)));
      }));

    it("keeps hostile keys and values as they are", () =>
      withStore(async (store) => {
        const tags = new Map([
          ["__proto__", "polluted"],
          ["constructor", "x"],
          ["ключ.数-٣", "\u0000 '; DROP TABLE tag_resource; --"],
          ["long", "𝄞".repeat(1024)],
          ["empty", ""],
          ["10", "z"],
          ["9", "a"],
        ]);
        await store.writer.write(A, { ...write("x'\"%_\\", {}), tags });
        const found = await store.reader.find(A, write("x'\"%_\\", {}).resource);
        expect(found?.tags).toBe(canonicalTags(tags));
        for (const [key, value] of tags) {
          expect(
            await idsOf(store, query([formatTagFilter({ kind: "in", key, values: [value] })])),
          ).toHaveLength(1);
          const values = await store.words.values(A, key, "worker", { prefix: "", after: null, limit: 10 });
          expect(values.map((entry) => entry.text)).toEqual([value]);
        }
        expect(Object.prototype).not.toHaveProperty("polluted");
        expect(await idsOf(store, query([], { name: "X'\"%_" }))).toEqual(["x'\"%_\\"]);
        expect(await idsOf(store, query([], { name: "x%%" }))).toEqual([]);
      }));

    it("keeps accounts apart", () =>
      withStore(async (store) => {
        await store.writer.write(A, write("x", { env: "prod" }));
        await store.writer.write("other", write("y", { env: "prod" }));
        expect(await idsOf(store, query(["env=prod"]))).toEqual(["x"]);
        expect(await idsOf(store, query([], { ids: ["x", "y"] }), "other")).toEqual(["y"]);
        expect(await store.reader.find("other", write("x", {}).resource)).toBeNull();
        expect(await store.log.changes("third", 0, 10)).toEqual([]);
      }));

    it("answers what other areas ask: ids that match and the values of a key", () =>
      withStore(async (store) => {
        await store.writer.load(
          A,
          Array.from({ length: 3000 }, (_, i) => write(`r${i}`, { team: `t${i % 2}` })),
        );
        expect((await store.reader.matchingIds(A, "worker", ["team=t1"]))?.size).toBe(1500);
        expect(await store.reader.matchingIds(A, "worker", [])).toBeNull();
        expect((await store.reader.matchingIds(A, "agent", ["team"]))?.size).toBe(0);
        const values = await store.reader.valuesOf(A, "worker", "team");
        expect(values.size).toBe(3000);
        expect(values.get("r7")).toBe("t1");
      }));
  });
}

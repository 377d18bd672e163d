/** Lists, totals and vocabularies of the tag store, compared with a naive model. */
import { matchesTags } from "@signalbox/protocol";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sql } from "../../../core/sql.ts";
import { FilteredVocabulary } from "../filtered-vocabulary.ts";
import type { VocabularyEntry } from "../tag-vocabulary.ts";
import type { TagWrite } from "../tag-write.ts";
import { queriesArbitrary, TagModel, writesArbitrary } from "./tag-store-model.ts";
import { A, type ContractEngine, idsOf, query, withStore, write } from "./test-store.ts";

/** The property runs thousands of evaluations on a real database. */
const PROPERTY_TIMEOUT_MS = 180_000;
const ALL_ENTRIES = { prefix: "", after: null, limit: 100 };
const NEVER = new AbortController().signal;

export function describeSearch(engine: ContractEngine): void {
  describe("search", () => {
    // Without bitmaps, and with bitmaps for every key and value with three uses.
    it.each([undefined, 3])(
      "finds the same resources and counts as a naive model after random writes (bitmaps from %s uses)",
      (bitmapMinUses) =>
        withStore(
          engine,
          async (store) => {
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
                    const filtered = new FilteredVocabulary(store.vocabulary, store.reader, wanted, {
                      signal: NEVER,
                      maxRead,
                    });
                    expect(countsOf(await filtered.keys(account, ALL_ENTRIES))).toEqual(
                      model.countEntries(wanted),
                    );
                    expect(countsOf(await filtered.values(account, "env", null, ALL_ENTRIES))).toEqual(
                      model.countEntries(wanted, "env"),
                    );
                  }
                }
              }
              expect(countsOf(await store.vocabulary.keys(account, ALL_ENTRIES))).toEqual(
                model.countEntries(query([])),
              );
            });
            await fc.assert(property, { numRuns: engine.runs });
          },
          bitmapMinUses,
        ),
      PROPERTY_TIMEOUT_MS,
    );

    it("stays correct when values become frequent and rare again, across several chunks", () =>
      withStore(engine, async (store) => {
        const count = engine.resources;
        const model = new Map<string, Record<string, string>>();
        const load = Array.from({ length: count }, (_, i) => write(`r${i}`, sampleTags(i, 1)));
        await store.writer.load(A, load);
        // Leaves a gap in the resource numbers, as deletions do over time.
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
        const values = await store.vocabulary.values(A, "env", null, { prefix: "", after: null, limit: 100 });
        for (const { text, uses } of values) {
          expect(uses).toBe([...model.values()].filter((tags) => tags["env"] === text).length);
        }
      }));

    it("lists every unchanged resource exactly once while other resources are written", () =>
      withStore(engine, async (store) => {
        await store.writer.load(
          A,
          Array.from({ length: 400 }, (_, i) => write(`r${i}`, { env: "prod" })),
        );
        const seen: string[] = [];
        for (let after = -1, step = 0; ; step++) {
          const page = await store.reader.list(A, query(["env=prod"]), after, 20);
          seen.push(...page.resources.map((resource) => resource.id));
          // Only resources with odd numbers change, some of them on pages already read.
          await store.writer.write(A, write(`r${step * 10 + 1}`, {}, { action: "delete" }));
          await store.writer.write(A, write(`r${step * 10 + 1}`, { env: "prod" }));
          await store.writer.write(A, write(`r${400 - step * 2 - 1}`, { env: "dev" }));
          if (page.next === null) break;
          after = page.next;
        }
        expect(new Set(seen).size).toBe(seen.length);
        for (let i = 0; i < 400; i += 2) expect(seen).toContain(`r${i}`);
      }));
  });
}

function countsOf(entries: readonly VocabularyEntry[]): Record<string, number> {
  return Object.fromEntries(entries.map(({ text, uses }) => [text, uses]));
}

/** Overlapping sets of very different sizes. */
function sampleTags(i: number, seed: number): Record<string, string> {
  return {
    env: (i * seed) % 3 === 0 ? "prod" : "dev",
    [`k${i % 2}`]: `v${(i * seed) % 1500}`,
    half: i % 2 === 0 ? "yes" : "no",
  };
}

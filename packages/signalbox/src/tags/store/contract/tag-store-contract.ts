/** The behaviour of the tag store, tested on each database. */
import { canonicalTags, formatTagFilter } from "@signalbox/protocol";
import { describe, expect, it } from "vitest";
import { parseIfMatch } from "../tag-write.ts";
import { describeHistory } from "./history-contract.ts";
import { describeSearch } from "./search-contract.ts";
import { A, type ContractEngine, idsOf, query, withStore, write } from "./test-store.ts";

export function describeTagStore(name: string, engine: ContractEngine): void {
  describe(`tag store on ${name}`, () => {
    describeSearch(engine);
    describeHistory(engine);

    it("accepts one of several writes with the same etag, and stores its tags only", () =>
      withStore(engine, async (store) => {
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

    it("stores hostile keys and values unchanged", () =>
      withStore(engine, async (store) => {
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
          const values = await store.vocabulary.values(A, key, "worker", {
            prefix: "",
            after: null,
            limit: 10,
          });
          expect(values.map((entry) => entry.text)).toEqual([value]);
        }
        expect(Object.prototype).not.toHaveProperty("polluted");
        expect(await idsOf(store, query([], { name: "X'\"%_" }))).toEqual(["x'\"%_\\"]);
        expect(await idsOf(store, query([], { name: "x%%" }))).toEqual([]);
      }));

    it("separates accounts", () =>
      withStore(engine, async (store) => {
        await store.writer.write(A, write("x", { env: "prod" }));
        await store.writer.write("other", write("y", { env: "prod" }));
        expect(await idsOf(store, query(["env=prod"]))).toEqual(["x"]);
        expect(await idsOf(store, query([], { ids: ["x", "y"] }), "other")).toEqual(["y"]);
        expect(await store.reader.find("other", write("x", {}).resource)).toBeNull();
        expect(await store.log.changes("third", 0, 10)).toEqual([]);
      }));

    it("finds the matching ids and the values of a key for other areas", () =>
      withStore(engine, async (store) => {
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

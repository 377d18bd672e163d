/** The history and the change feed of the tag store, and pruning. */
import { describe, expect, it } from "vitest";
import { rawSql, sql } from "../../../core/sql.ts";
import { A, type ContractEngine, query, withStore, write } from "./test-store.ts";

export function describeHistory(engine: ContractEngine): void {
  describe("history", () => {
    it("stores who changed what, prunes by number, and reports expired positions", () =>
      withStore(engine, async (store) => {
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
        // Pruning deletes the values and the deleted resource when the history no longer contains them.
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

    it("deletes all rows of a value that was frequent and is no longer used", () =>
      withStore(
        engine,
        async (store) => {
          for (let i = 0; i < 9; i++) await store.writer.write(A, write(`r${i}`, { env: "prod" }));
          expect(await store.reader.total(A, query(["env=prod"]))).toBe(9);
          for (let i = 0; i < 9; i++) await store.writer.write(A, write(`r${i}`, {}, { action: "delete" }));
          expect(await store.reader.total(A, query(["env=prod"]))).toBe(0);
          store.clock.time += 2000;
          await store.log.prune(new AbortController().signal);
          for (const table of ["tag_value", "tag_key", "tag_posting", "tag_bitmap"]) {
            expect(await store.database.all(rawSql(`SELECT 1 FROM ${table} WHERE key_no <> 0`))).toEqual([]);
          }
        },
        3,
      ));

    it("sends followers every change after a position once and in order, until the signal aborts", () =>
      withStore(engine, async (store) => {
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
  });
}

/** The tests of the `Database` contract. One test file per database runs them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { migrate } from "./migrate.ts";
import type { Database, ScanTurn } from "./database.ts";
import { joinSql, rawSql, sql, sqlList } from "../core/sql.ts";

const TURN: ScanTurn = { account: "default", kind: "search" };

/** A database that waits at most one second for unavailable storage. */
export interface ContractDatabase {
  readonly database: Database;
  /** Makes storage unavailable. Resolves to a function that makes it available again. */
  readonly lose: () => Promise<() => Promise<void>>;
  readonly cleanUp: () => Promise<void>;
}

export function describeDatabase(engine: string, open: () => Promise<ContractDatabase>): void {
  describe(`a database on ${engine}`, () => {
    let database: Database;
    let lose: ContractDatabase["lose"];
    let cleanUp: () => Promise<void>;
    beforeAll(async () => {
      ({ database, lose, cleanUp } = await open());
      await database.run(
        rawSql(
          "CREATE TABLE item (id TEXT PRIMARY KEY, n BIGINT, body BLOB_TYPE)".replace(
            "BLOB_TYPE",
            blobType(database),
          ),
        ),
      );
    });
    beforeEach(() => database.run(sql`DELETE FROM item`));
    afterAll(async () => {
      await database.close();
      await cleanUp();
    });

    const insert = (id: string, n: number) => sql`INSERT INTO item (id, n) VALUES (${id}, ${n})`;
    const ids = async () =>
      (await database.all<{ id: string }>(sql`SELECT id FROM item ORDER BY id`)).map((row) => row.id);

    it("reads integers as numbers, blobs as bytes and NULL as null", async () => {
      const body = new Uint8Array([0, 255, 128]);
      await database.run(
        sql`INSERT INTO item (id, n, body) VALUES (${"a"}, ${9_007_199_254_740_991}, ${body})`,
      );
      await database.run(sql`INSERT INTO item (id, n, body) VALUES (${"b"}, ${null}, ${null})`);
      const rows = await database.all<{ id: string; n: number | null; body: Uint8Array | null }>(
        sql`SELECT * FROM item ORDER BY id`,
      );
      expect(rows[0]?.n).toBe(9_007_199_254_740_991);
      expect([...(rows[0]?.body ?? [])]).toEqual([...body]);
      expect(rows[1]).toMatchObject({ id: "b", n: null, body: null });
    });

    it("a scan returns the same rows as any other read, sees every earlier write, and fails with its statement", async () => {
      const body = new Uint8Array([0, 255]);
      for (let i = 0; i < 3; i++) {
        const id = `scanned ${i}`;
        await database.run(
          sql`INSERT INTO item (id, n, body) VALUES (${id}, ${i === 0 ? null : i}, ${body})`,
        );
        const query = sql`SELECT * FROM item WHERE id >= ${"scanned"} ORDER BY id`;
        const [scanned, read] = await Promise.all([database.scan(query, TURN), database.all(query)]);
        expect(scanned).toHaveLength(i + 1);
        expect(scanned.map((row) => ({ ...(row as object) }))).toEqual(
          read.map((row) => ({ ...(row as object) })),
        );
      }
      await expect(database.scan(rawSql("SELECT * FROM no_such_table"), TURN)).rejects.toThrow(
        /no_such_table/,
      );
      const many = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          database.scan<{ n: number }>(sql`SELECT n + ${i} AS n FROM item WHERE n = 1`, TURN),
        ),
      );
      expect(many.map(([row]) => Number(row?.n))).toEqual(Array.from({ length: 20 }, (_, i) => 1 + i));
    });

    it("hundreds of searches of one account are refused beyond a number, and leave connections for everything else", async () => {
      const query =
        rawSql(`WITH RECURSIVE number (n) AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM number WHERE n < 20000)
                            SELECT max(n) AS n FROM number`);
      const searches = Array.from({ length: 300 }, () =>
        database.scan<{ n: number }>(query, { account: "greedy", kind: "search" }),
      );
      const settled = Promise.allSettled(searches);
      await database.run(insert("meanwhile", 1));
      expect(await database.scan<{ n: number }>(query, { account: "other", kind: "search" })).toEqual([
        { n: 20_000 },
      ]);
      const results = await settled;
      const refused = results.filter(({ status }) => status === "rejected");
      expect(refused.length).toBeGreaterThan(150);
      expect(results.length - refused.length).toBeGreaterThan(50);
      for (const result of refused) expect(result).toMatchObject({ reason: { id: "overloaded" } });
    });

    it("returns the number of rows affected by a write", async () => {
      await database.run(insert("a", 1));
      await database.run(insert("b", 1));
      expect(await database.run(sql`UPDATE item SET n = 2 WHERE n = ${1}`)).toEqual({ changes: 2 });
      expect(await database.run(sql`DELETE FROM item WHERE id = ${"zzz"}`)).toEqual({ changes: 0 });
    });

    it("get returns undefined if there is no row", async () => {
      expect(await database.get(sql`SELECT id FROM item WHERE id = ${"none"}`)).toBeUndefined();
    });

    it("commits a transaction atomically and returns the result of the callback", async () => {
      const result = await database.transaction(async (tx) => {
        await tx.run(insert("a", 1));
        await tx.run(insert("b", 2));
        return (await tx.get<{ total: number }>(sql`SELECT count(*) AS total FROM item`))?.total;
      });
      expect(result).toBe(2);
      expect(await ids()).toEqual(["a", "b"]);
    });

    it("rolls back a transaction whose callback throws, and remains usable", async () => {
      const failing = database.transaction(async (tx) => {
        await tx.run(insert("a", 1));
        throw new Error("rejected");
      });
      await expect(failing).rejects.toThrow("rejected");
      expect(await ids()).toEqual([]);
      await database.run(insert("b", 1));
      expect(await ids()).toEqual(["b"]);
    });

    it("rolls back a transaction in which a statement fails", async () => {
      await database.run(insert("a", 1));
      const failing = database.transaction(async (tx) => {
        await tx.run(insert("b", 1));
        await tx.run(insert("a", 2));
      });
      await expect(failing).rejects.toThrow();
      expect(await ids()).toEqual(["a"]);
    });

    it("never interleaves transactions: concurrent read-modify-write loses no update", async () => {
      await database.run(insert("counter", 0));
      const increment = () =>
        database.transaction(async (tx) => {
          const row = await tx.get<{ n: number }>(sql`SELECT n FROM item WHERE id = ${"counter"}`);
          await tx.run(sql`UPDATE item SET n = ${(row?.n ?? 0) + 1} WHERE id = ${"counter"}`);
        });
      await Promise.all(Array.from({ length: 50 }, increment));
      expect(await database.get(sql`SELECT n FROM item WHERE id = ${"counter"}`)).toMatchObject({ n: 50 });
    });

    it("reads see no uncommitted data", async () => {
      let seen: string[] | undefined;
      await database.transaction(async (tx) => {
        await tx.run(insert("a", 1));
        seen = await ids();
      });
      expect(seen).toEqual([]);
      expect(await ids()).toEqual(["a"]);
    });

    it("never interleaves transactions of one scope, and a failed one does not affect the others", async () => {
      await database.run(insert("counter", 0));
      const scope = { scope: "counters" };
      const increment = (fails: boolean) =>
        database.transaction(async (tx) => {
          const row = await tx.get<{ n: number }>(sql`SELECT n FROM item WHERE id = ${"counter"}`);
          await tx.run(sql`UPDATE item SET n = ${(row?.n ?? 0) + 1} WHERE id = ${"counter"}`);
          if (fails) throw new Error("rejected");
        }, scope);
      const outcomes = await Promise.allSettled(Array.from({ length: 30 }, (_, i) => increment(i % 3 === 0)));
      expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(10);
      expect(await database.get(sql`SELECT n FROM item WHERE id = ${"counter"}`)).toMatchObject({ n: 20 });
    });

    it("fails all waiting writes after the time limit if storage is unavailable, and writes nothing", async () => {
      const restore = await lose();
      const writes = Array.from({ length: 20 }, (_, i) => database.run(insert(`lost${i}`, i)));
      for (const outcome of await Promise.allSettled(writes))
        expect(outcome).toMatchObject({
          status: "rejected",
          reason: { id: "storage_unavailable", status: 503 },
        });
      expect(database.problem).not.toBeNull();
      await restore();
      await expect.poll(() => database.problem).toBeNull();
      await database.run(insert("after", 1));
      expect(await ids()).toEqual(["after"]);
    });

    it("completes waiting writes and reads if storage is unavailable for a short time", async () => {
      const restore = await lose();
      const write = database.run(insert("patient", 1));
      await restore();
      await write.catch((error: unknown) => {
        // A restart may take longer than the wait; then the write must fail with this error.
        expect(error).toMatchObject({ id: "storage_unavailable" });
        return database.run(insert("patient", 1));
      });
      expect(await ids()).toEqual(["patient"]);
    });

    it("composes statements from fragments and never interprets a value as SQL", async () => {
      const hostile = "x'); DROP TABLE item; --";
      await database.run(insert(hostile, 1));
      await database.run(insert("b", 2));
      await database.run(insert("c", 3));
      const conditions = joinSql([sql`n >= ${1}`, sql`id IN (${sqlList([hostile, "c"])})`], " AND ");
      const rows = await database.all<{ id: string }>(
        sql`SELECT id FROM item WHERE ${conditions} ORDER BY n LIMIT ${10}`,
      );
      expect(rows.map((row) => row.id)).toEqual([hostile, "c"]);
    });

    it("applies the migrations once", async () => {
      await migrate(database);
      await migrate(database);
      expect(await database.all(sql`SELECT id FROM account`)).toEqual([]);
    });
  });
}

function blobType(database: Database): string {
  return database.engine === "postgres" ? "BYTEA" : "BLOB";
}

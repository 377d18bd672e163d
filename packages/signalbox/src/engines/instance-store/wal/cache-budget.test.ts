import { describe, expect, it } from "vitest";
import type { InstanceDatabase } from "../instance-store.ts";
import { rawSql, sql } from "../../../core/sql.ts";
import { useInstanceDisks } from "../instance-disks-fixture.ts";
import { CacheBudget } from "./cache-budget.ts";

const disks = useInstanceDisks();

const cacheOf = (database: InstanceDatabase) =>
  database.get<{ cache_size: number }>(rawSql("PRAGMA cache_size"))?.cache_size;

describe("large page caches", () => {
  it("are limited in number", () => {
    const budget = new CacheBudget();
    const taken = Array.from({ length: 70 }, () => budget.acquire());
    expect(taken.filter(Boolean)).toHaveLength(64);
    budget.release();
    expect([budget.acquire(), budget.acquire()]).toEqual([true, false]);
  });

  it("are given to an instance that has filled its WAL, and the instance keeps its rows", async () => {
    const database = await disks.open("one").open("busy");
    database.run(rawSql("CREATE TABLE t (x BLOB)"));
    expect(cacheOf(database)).toBe(-256);
    const row = new Uint8Array(1024 * 1024);
    for (let i = 0; i < 9; i++) {
      database.begin();
      database.run(sql`INSERT INTO t VALUES (${row})`);
      database.commit();
      await database.sync();
    }
    await expect.poll(() => cacheOf(database)).toBe(-1024);
    expect(database.get(sql`SELECT count(*) AS n, sum(length(x)) AS bytes FROM t`)).toMatchObject({
      n: 9,
      bytes: 9 * row.length,
    });
    await database.close();
  });
});

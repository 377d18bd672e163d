import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { InstanceDatabase } from "../instance-store.ts";
import { rawSql, sql } from "../../../core/sql.ts";
import { CacheBudget } from "./cache-budget.ts";
import { InstanceFiles } from "./journal-store.ts";

function fail(error: Error): never {
  throw error;
}

const cacheOf = (database: InstanceDatabase) =>
  database.get<{ cache_size: number }>(rawSql("PRAGMA cache_size"))?.cache_size;

describe("large page caches", () => {
  it("are for so many at a time", () => {
    const budget = new CacheBudget();
    const taken = Array.from({ length: 70 }, () => budget.take());
    expect(taken.filter(Boolean)).toHaveLength(64);
    budget.giveBack();
    expect([budget.take(), budget.take()]).toEqual([true, false]);
  });

  it("go to an instance that has filled its log, which keeps what it wrote", async () => {
    const folder = await mkdtemp(join(tmpdir(), "signalbox-cache-"));
    const files = new InstanceFiles(folder, { segmentBytes: 2 ** 30, onFailure: fail, onStall: fail });
    const database = await files.open({ account: "default", agent: "a", name: "busy" });
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
    await files.close();
    await rm(folder, { recursive: true, force: true });
  });
});

import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { queryInProcess } from "./read-only-query.ts";

const MEBIBYTE = 1024 * 1024;
/** A timeout for a busy machine; only one test is about time. */
const LIMITS = { maxRows: 10, maxBytes: MEBIBYTE, timeoutMs: 50_000, maxMemoryBytes: 256 * MEBIBYTE };

function query(text: string, limits: Partial<typeof LIMITS> = {}) {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE t (n); INSERT INTO t VALUES (1), (9007199254740993)");
  return queryInProcess(database.serialize(), text, { ...LIMITS, ...limits });
}

describe("a query in its own process", () => {
  it("returns its rows, with exact large integers", async () => {
    expect(await query("SELECT n FROM t")).toEqual({
      rows: [{ n: 1 }, { n: 9007199254740993n }],
      isCut: false,
    });
  });

  it("is killed when its process uses too much memory, with an error that says so", async () => {
    // Sorts several gigabytes in memory, so that the process cannot answer before its memory is checked, however busy the machine is.
    const many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 4000)";
    await expect(query(`${many} SELECT hex(zeroblob(400000)) || i AS t FROM n ORDER BY t`)).rejects.toThrow(
      "more than 268435456 bytes of memory",
    );
  });

  it("is killed when it takes too long", async () => {
    const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    await expect(query(endless, { timeoutMs: 200 })).rejects.toThrow("longer than 200 ms");
  });

  it("stops at the limits of rows and bytes, and cannot create a larger value", async () => {
    const many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50)";
    expect(await query(`${many} SELECT i FROM n`)).toMatchObject({ isCut: true, rows: { length: 10 } });
    const wide = await query(`${many} SELECT hex(zeroblob(100000)) AS t FROM n`);
    expect(wide).toMatchObject({ isCut: true, rows: { length: 5 } });
    await expect(query("SELECT zeroblob(2000000)")).rejects.toThrow("too big");
  });
});

import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { PreparedStatement } from "./prepared-statement.ts";

let database: DatabaseSync;
beforeEach(() => {
  database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)");
});

const prepare = (text: string) => new PreparedStatement(database.prepare(text));

describe("a prepared statement", () => {
  it("returns every integer exactly: as a number up to 2^53, as a bigint beyond", () => {
    const read = prepare("SELECT ? AS n");
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (integer) => {
        const value = read.all([integer])[0]?.["n"];
        const isSafe = Number.isSafeInteger(Number(integer)) && BigInt(Number(integer)) === integer;
        expect(value).toBe(isSafe ? Number(integer) : integer);
      }),
    );
  });

  it("returns both kinds in one row, and text, reals, bytes and null unchanged", () => {
    const [row] = prepare(
      "SELECT 9007199254740993 AS big, 7 AS small, 1.5 AS r, 'x' AS t, x'01' AS b, NULL AS z",
    ).all([]);
    expect({ ...row }).toEqual({
      big: 9007199254740993n,
      small: 7,
      r: 1.5,
      t: "x",
      b: Uint8Array.of(1),
      z: null,
    });
  });

  it("that writes and returns rows runs once, also if it returns a large integer", () => {
    const insert = prepare("INSERT INTO t (n) VALUES (?) RETURNING n, id");
    insert.neverRunTwice();
    expect({ ...insert.all([9007199254740993n])[0] }).toEqual({ n: 9007199254740993n, id: 1 });
    expect({ ...insert.all([5])[0] }).toEqual({ n: 5, id: 2 });
    expect(prepare("SELECT count(*) AS n FROM t").all([])[0]?.["n"]).toBe(2);
  });

  it("throws other errors unchanged", () => {
    expect(() => prepare("SELECT abs(-9223372036854775807 - 1)").all([])).toThrow("integer overflow");
  });
});

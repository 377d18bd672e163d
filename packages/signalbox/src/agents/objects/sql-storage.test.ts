import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../core/sql.ts";
import { ChangeCounters } from "./change-counters.ts";
import { SqlStorage } from "./sql-storage.ts";
import { openStorage, type TestStorage } from "./storage-fixture.ts";

let test: TestStorage;
beforeAll(async () => {
  test = await openStorage();
});
afterAll(() => test.close());

const exec = (query: string, ...values: unknown[]) => test.storage.sql.exec(query, ...values);

describe("a cursor", () => {
  it("gives rows as objects and as arrays, with one position for all ways of reading", () => {
    const cursor = exec(
      "SELECT 1 AS a, 2 AS a, x'0102' AS b UNION ALL SELECT 3, 4, NULL UNION ALL SELECT 5, 6, 7",
    );
    expect(cursor.columnNames).toEqual(["a", "a", "b"]);
    const first = cursor.next();
    expect(first.value).toEqual({ a: 2, b: new Uint8Array([1, 2]).buffer });
    expect(cursor.raw().next().value).toEqual([3, 4, null]);
    expect([...cursor]).toEqual([{ a: 6, b: 7 }]);
    expect([cursor.toArray(), cursor.next()]).toEqual([[], { done: true }]);
    expect([cursor.rowsRead, cursor.rowsWritten]).toEqual([3, 0]);
  });

  it("has exactly one row for one()", () => {
    expect(exec("SELECT 1 AS n").one()).toEqual({ n: 1 });
    expect(() => exec("SELECT 1 WHERE 0").one()).toThrow("got no results");
    expect(() => exec("SELECT 1 UNION SELECT 2").one()).toThrow("got multiple results");
  });

  it("counts written rows, with and without RETURNING", () => {
    exec("CREATE TABLE written (a INTEGER PRIMARY KEY, b)");
    expect(exec("INSERT INTO written (b) VALUES (1), (2)").rowsWritten).toBe(2);
    const returning = exec("INSERT INTO written (b) VALUES (3), (4) RETURNING a");
    expect([returning.rowsWritten, returning.toArray()]).toEqual([2, [{ a: 3 }, { a: 4 }]]);
    expect(exec("UPDATE written SET b = 0 WHERE a > 1").rowsWritten).toBe(3);
    expect(exec("SELECT 1; SELECT 2 AS two").rowsWritten).toBe(0);
    expect(exec("CREATE TABLE later (a)").rowsWritten).toBe(1);
    expect(exec("SELECT 1; INSERT INTO later VALUES (1), (2) RETURNING a").rowsWritten).toBe(2);
  });
});

describe("the catalog", () => {
  it("does not show the tables of the runtime, whatever way a program lists its tables", () => {
    exec("CREATE TABLE mine (a TEXT PRIMARY KEY, b)");
    exec("INSERT INTO mine VALUES ('sqlite_master', 1)");
    const own = /_signalbox/;
    for (const query of [
      "SELECT name, tbl_name FROM sqlite_master",
      "select name from main.sqlite_schema",
      "SELECT m.name FROM sqlite_master AS m JOIN sqlite_schema s ON s.name = m.name",
      "WITH t AS (SELECT name FROM sqlite_master) SELECT * FROM t",
      "WITH RECURSIVE t(name) AS (SELECT name FROM sqlite_schema) SELECT * FROM t",
      "PRAGMA table_list",
      "SELECT name FROM pragma_table_list WHERE schema = 'main'",
      "SELECT 1; SELECT name FROM sqlite_master;",
    ]) {
      const rows = exec(query).toArray();
      expect(
        rows.map(({ name }) => name),
        query,
      ).toContain("mine");
      expect(JSON.stringify(rows), query).not.toMatch(own);
    }
    expect(exec("SELECT a FROM mine WHERE a = 'sqlite_master' -- sqlite_master").one()).toEqual({
      a: "sqlite_master",
    });
    expect(exec("SELECT count(*) AS n FROM sqlite_master WHERE name = ?", "mine").one()).toEqual({ n: 1 });
    expect(exec("INSERT INTO mine SELECT name, 2 FROM sqlite_master WHERE name = 'mine'").rowsWritten).toBe(
      1,
    );
  });
});

describe("the counters of changes", () => {
  const read = () =>
    exec("SELECT changes() AS changed, total_changes() AS total, last_insert_rowid() AS last").one();

  it("are about the writes of the program, not about those of the runtime", async () => {
    const own = await openStorage();
    const { sql: program, kv } = own.storage;
    const counters = () =>
      program.exec("SELECT changes(), total_changes(), last_insert_rowid()").raw().next().value;
    own.runtime.transactions.open();
    own.database.run(sql`INSERT INTO _signalbox_meta (key, value) VALUES ('a', '1'), ('b', '2')`);
    expect(counters()).toEqual([0, 0, 0]);
    program.exec("CREATE TABLE counted (id INTEGER PRIMARY KEY, v)");
    program.exec("INSERT INTO counted (v) VALUES (1), (2)");
    own.database.run(sql`DELETE FROM _signalbox_meta WHERE key = 'a'`);
    expect(counters()).toEqual([2, 2, 2]);
    kv.put("a", 1);
    own.database.run(sql`DELETE FROM _signalbox_meta WHERE key = 'b'`);
    expect(counters()).toEqual([1, 3, 2]);
    await own.storage.deleteAll();
    expect(counters()).toEqual([0, 0, 0]);
    await own.close();
  });

  it("are SQLite's own for an agent, which writes also with other statements", async () => {
    const own = await openStorage();
    const { transactions } = own.runtime;
    const { database } = own;
    const counters = new ChangeCounters(database, "connection");
    const program = new SqlStorage({ database, transactions, counters });
    program.exec("CREATE TABLE counted (id INTEGER PRIMARY KEY, v)");
    database.guardedStatement(["INSERT INTO counted (v) VALUES (1), (2), (3)"]).all([]);
    expect(program.exec("SELECT changes(), last_insert_rowid() AS last").columnNames).toEqual([
      "changes()",
      "last",
    ]);
    expect(program.exec("SELECT changes() AS changed, last_insert_rowid() AS last").one()).toEqual({
      changed: 3,
      last: 3,
    });
    await own.close();
  });

  it("are read as usual in texts of several statements, in conditions and in triggers", () => {
    exec("CREATE TABLE many (id INTEGER PRIMARY KEY, v); CREATE TABLE log (last)");
    exec("CREATE TRIGGER logs AFTER INSERT ON many BEGIN INSERT INTO log VALUES (last_insert_rowid()); END");
    expect(exec("INSERT INTO many (v) VALUES (1), (2), (3); SELECT changes() AS n").one()).toEqual({ n: 3 });
    expect(exec("SELECT last FROM log").toArray()).toEqual([{ last: 1 }, { last: 2 }, { last: 3 }]);
    exec("UPDATE many SET v = 0 WHERE id = last_insert_rowid()");
    expect(exec("SELECT id FROM many WHERE v = 0 AND changes() = 1").one()).toEqual({ id: 3 });
    expect(read()).toMatchObject({ changed: 1, last: 3 });
  });

  it("keep the names of columns, and words in strings and comments", () => {
    exec('CREATE TABLE "changes()" (changes)');
    const { columnNames } = exec("SELECT changes(), total_changes ( ) + 1, 'changes()' /* changes() */");
    expect(columnNames).toEqual(["changes()", "total_changes ( ) + 1", "'changes()' /* changes() */"]);
    expect(exec('SELECT changes AS "last_insert_rowid()" FROM "changes()"').columnNames).toEqual([
      "last_insert_rowid()",
    ]);
    exec("CREATE VIEW counted_view AS SELECT changes() AS n");
    expect(JSON.stringify(exec("SELECT sql FROM sqlite_master").toArray())).not.toMatch(/_signalbox_changes/);
  });
});

describe("bindings", () => {
  const stored = (value: unknown) => exec("SELECT typeof(?1) AS type, ?1 AS value", value).one();

  it.each([
    ["text", "text", "text"],
    [1.5, "real", 1.5],
    [null, "null", null],
    [undefined, "null", null],
    [true, "text", "true"],
    [{}, "text", "[object Object]"],
    [Number.NaN, "null", null],
  ])("%o is stored as %s", (value, type, read) => {
    expect(stored(value)).toEqual({ type, value: read });
  });

  it("of bytes come back as an ArrayBuffer of their own", () => {
    const bytes = new Uint8Array([1, 2, 3, 4]);
    for (const value of [bytes.subarray(1, 3), bytes.slice(1, 3).buffer, new DataView(bytes.buffer, 1, 2)])
      expect(stored(value)).toEqual({ type: "blob", value: new Uint8Array([2, 3]).buffer });
  });

  it("are refused if they are bigints or if their number is wrong", () => {
    expect(() => stored(5n)).toThrow(TypeError);
    expect(() => exec("SELECT ?, ?", 1)).toThrow("Wrong number of parameter bindings");
    expect(() => exec("SELECT '?' -- ?", 1)).toThrow("Wrong number of parameter bindings");
  });

  it("beyond 2^53 are read as the nearest number", () => {
    expect(exec("SELECT 9223372036854775807 AS n").one()).toEqual({ n: 2 ** 63 });
  });

  it("belong to the last of several statements", () => {
    const rows = exec(
      "CREATE TABLE several (a, b DEFAULT ';?'); INSERT INTO several (a) VALUES ('x'); SELECT a, b, ? AS c FROM several; -- end",
      9,
    ).toArray();
    expect(rows).toEqual([{ a: "x", b: ";?", c: 9 }]);
  });
});

describe("errors", () => {
  it.each([
    ["SELEC", 'near "SELEC": syntax error: SQLITE_ERROR'],
    ["SELECT * FROM nowhere", "no such table: nowhere: SQLITE_ERROR"],
    ["", "SQL code did not contain a statement."],
    [" -- nothing", "SQL code did not contain a statement."],
    ["BEGIN", "cannot begin or end a transaction"],
    ["SAVEPOINT a", "cannot begin or end a transaction"],
    ["PRAGMA user_version = 7", "SQLITE_AUTH"],
    ["ATTACH ':memory:' AS other", "SQLITE_AUTH"],
    ["DELETE FROM _signalbox_kv", "SQLITE_AUTH"],
  ])("of %o", (query, message) => {
    expect(() => exec(query)).toThrow(message);
  });

  it("of constraints have the extended code", () => {
    exec("CREATE TABLE once (a UNIQUE); INSERT INTO once VALUES (1)");
    expect(() => exec("INSERT INTO once VALUES (1)")).toThrow(
      "UNIQUE constraint failed: once.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
    );
  });
});

describe("transactionSync", () => {
  it("rolls back what it wrote when it throws, and nothing else", () => {
    exec("CREATE TABLE kept (a)");
    const run = (value: string, error?: Error) =>
      test.storage.transactionSync(() => {
        exec("INSERT INTO kept VALUES (?)", value);
        if (error !== undefined) throw error;
        return value;
      });
    expect(run("a")).toBe("a");
    expect(() => run("b", new TypeError("refused"))).toThrow(TypeError);
    expect(
      test.storage.transactionSync(() => {
        exec("INSERT INTO kept VALUES ('c')");
        expect(() => run("d", new Error("inner"))).toThrow("inner");
        return run("e");
      }),
    ).toBe("e");
    expect(exec("SELECT group_concat(a, '') AS all_of FROM kept").one()).toEqual({ all_of: "ace" });
  });
});

describe("deleteAll", () => {
  it("removes tables, views, triggers, full-text tables, keys that refer to each other, and values", async () => {
    exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY AUTOINCREMENT);
      CREATE TABLE child (p REFERENCES parent (id)); CREATE INDEX by_p ON child (p); CREATE VIEW seen AS SELECT * FROM child;
      CREATE VIRTUAL TABLE words USING fts5(text);
      CREATE TRIGGER guard BEFORE DELETE ON child BEGIN SELECT RAISE(ABORT, 'kept'); END;
      INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1); INSERT INTO words VALUES ('a')`);
    await test.storage.put("key", 1);
    await test.storage.deleteAll();
    const left = exec(
      "SELECT name FROM sqlite_schema WHERE name NOT LIKE '\\_signalbox%' ESCAPE '\\'",
    ).toArray();
    expect(
      left.map(({ name }) => name as string).filter((name) => !/^sqlite_(sequence|autoindex)/.test(name)),
    ).toEqual([]);
    expect([...(await test.storage.list())]).toEqual([]);
    exec("CREATE TABLE parent (id)");
  });
});

describe("rows", () => {
  it("are those that were inserted, in every way of reading", () => {
    exec("CREATE TABLE anything (n INTEGER PRIMARY KEY, value)");
    const value = fc.oneof(
      fc.string({ unit: "binary" }).filter((text) => !text.includes("\0")),
      fc.double({ noNaN: true }),
      fc.constant(null),
      fc.uint8Array(),
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 8 }), fc.nat(8), (values, taken) => {
        exec("DELETE FROM anything");
        for (const one of values) exec("INSERT INTO anything (value) VALUES (?)", one);
        const expected = values.map((one) => (one instanceof Uint8Array ? one.slice().buffer : one));
        const cursor = exec("SELECT value FROM anything ORDER BY n");
        const read: unknown[] = [];
        for (let i = 0; i < taken; i++) {
          const next = cursor.next();
          if (!next.done) read.push(next.value["value"]);
        }
        read.push(...[...cursor.raw()].map(([one]) => one));
        expect(read.map(comparable)).toEqual(expected.map(comparable));
      }),
      { numRuns: 100 },
    );
  });
});

/** SQLite has no negative zero in a column without type; text is compared as such. */
function comparable(value: unknown): unknown {
  return Object.is(value, -0) ? 0 : value;
}

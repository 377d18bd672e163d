/** Storage: keys and values, SQL, transactions, alarms. */
import { DurableObject } from "cloudflare:workers";
import { Notes, show } from "./show";

const repeat = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`);

export class Store extends DurableObject {
  async keys() {
    const { storage } = this.ctx;
    const notes = new Notes();
    const values = {
      number: 1.5,
      text: "é\u0000😀",
      nothing: null,
      nested: { list: [1, { deep: true }], none: undefined },
      date: new Date(5),
      map: new Map([["a", new Set([1])]]),
      bytes: new Uint8Array([1, 2, 255]),
      buffer: new ArrayBuffer(2),
      bigint: 2n ** 70n,
      pattern: /x+/gi,
      error: new RangeError("kept"),
      nan: NaN,
      minusZero: -0,
      boolean: false,
      sparse: [1, , 3],
    };
    for (const [name, value] of Object.entries(values)) {
      await notes.note(`put ${name}`, () => storage.put(name, value));
      await notes.note(`get ${name}`, () => storage.get(name));
    }
    await notes.note("put undefined", () => storage.put("x", undefined));
    await notes.note("put without value", () => storage.put("x"));
    await notes.note("put a function", () => storage.put("x", () => 1));
    await notes.note("put a class instance", () =>
      storage.put(
        "x",
        new (class Point {
          x = 1;
        })(),
      ),
    );
    await notes.note("get the class instance", () => storage.get("x"));
    await notes.note("put several", () =>
      storage.put({ "a/1": 1, "a/2": 2, "b/1": 3, "a/é": 4, "a/😀": 5, "a/\uFFFD": 6 }),
    );
    await notes.note("get several", () => storage.get(["b/1", "a/1", "missing", "a/1"]));
    await notes.note("get missing", () => storage.get("missing"));
    await notes.note("get no keys", () => storage.get([]));
    await notes.note("delete", () => storage.delete("b/1"));
    await notes.note("delete again", () => storage.delete("b/1"));
    await notes.note("delete several", () => storage.delete(["number", "text", "missing"]));
    await notes.note("a number as key", () => storage.put(12, "twelve"));
    await notes.note("read by text", () => storage.get("12"));
    await notes.note("empty key", () => storage.put("", 1));
    await notes.note("get the empty key", () => storage.get(""));
    await notes.note("long key", () => storage.put("k".repeat(2049), 1));
    await notes.note("longest key", () =>
      storage.put("k".repeat(2048), 1).then(() => storage.delete("k".repeat(2048))),
    );
    await notes.note("get a long key", () => storage.get("k".repeat(2049)));
    await notes.note("get 129 keys", () => storage.get(repeat(129)));
    await notes.note("put 129 keys", () =>
      storage.put(Object.fromEntries(repeat(129).map((key) => [key, 1]))),
    );
    await notes.note("delete 129 keys", () => storage.delete(repeat(129)));
    await notes.note("null as key", () => storage.get(null));
    await notes.note("undefined as key", () => storage.get(undefined));
    const lists = {
      all: {},
      prefix: { prefix: "a/" },
      start: { start: "b", limit: 3 },
      startAfter: { startAfter: "a/1", limit: 2 },
      end: { end: "a/2" },
      range: { start: "a/2", end: "bytes" },
      reverse: { prefix: "a/", reverse: true },
      "reverse and limit": { prefix: "a/", reverse: true, limit: 2 },
      "reverse and start": { start: "a/2", reverse: true, limit: 2, prefix: "a/" },
      "end before start": { start: "b", end: "a" },
      "start and startAfter": { start: "a", startAfter: "b" },
      "limit 0": { limit: 0 },
      "limit below 0": { limit: -1 },
      "limit 1.5": { prefix: "a/", limit: 1.5 },
      "text as limit": { limit: "2" },
      "unknown options": { prefix: "a/", noCache: true, allowConcurrency: true, other: 1 },
    };
    for (const [name, options] of Object.entries(lists))
      await notes.note(`list ${name}`, async () => [...(await storage.list(options)).keys()]);
    await notes.note("list values", () => storage.list({ prefix: "a/", limit: 2 }));
    await notes.note("list null", () => storage.list(null).then((map) => map.size));
    await notes.note("kv put and get", () => [
      storage.kv.put("kv", { a: [1] }),
      storage.kv.get("kv"),
      storage.kv.get("no"),
    ]);
    await notes.note("kv list", () => [...storage.kv.list({ prefix: "kv" })]);
    await notes.note("kv list is lazy", () => typeof storage.kv.list().next);
    await notes.note(
      "kv list of wrong options",
      () => storage.kv.list({ limit: 0 }) && "no error at the call",
    );
    await notes.note("kv delete", () => [storage.kv.delete("kv"), storage.kv.delete("kv")]);
    await notes.note("kv put undefined", () => storage.kv.put("kv", undefined));
    await notes.note("kv put a function", () => storage.kv.put("kv", () => 1));
    await notes.note("sync", () => storage.sync());
    await notes.note("deleteAll", () => storage.deleteAll());
    await notes.note("all after deleteAll", () => storage.list());
    return notes.steps;
  }

  async sql() {
    const { sql } = this.ctx.storage;
    const notes = new Notes();
    const all = (text: string, ...values: unknown[]) => sql.exec(text, ...values).toArray();
    await notes.note("create", () =>
      all("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT NOT NULL UNIQUE, c CHECK (c > 0))"),
    );
    const values = {
      integer: 7,
      float: 1.25,
      text: "é'\";😀",
      "text with a zero": "a\u0000b",
      null: null,
      undefined: undefined,
      true: true,
      buffer: new Uint8Array([1, 2, 3]).buffer,
      view: new Uint8Array([0, 1, 2, 3]).subarray(1, 3),
      "empty buffer": new ArrayBuffer(0),
      "a Uint16Array": new Uint16Array([1, 2]),
      nan: NaN,
      infinity: Infinity,
      "2^53": 2 ** 53,
      "-0": -0,
      bigint: 5n,
      "large bigint": 2n ** 62n,
      date: new Date(0),
      object: { a: 1 },
      array: [1, 2],
      function: () => 1,
      symbol: Symbol("x"),
    };
    for (const [name, value] of Object.entries(values))
      await notes.note(`bind ${name}`, () => all("SELECT ? AS value, typeof(?1) AS type", value));
    const texts = {
      "big integer": "SELECT 9007199254740993 AS n, -9223372036854775808 AS low, 9223372036854775807 AS high",
      "safe integers": "SELECT 9007199254740991 AS n, -9007199254740991 AS m",
      real: "SELECT 1.0 AS one, 1e300 AS large, 9e999 AS infinite, -0.0 AS zero",
      blob: "SELECT x'00ff' AS bytes, x'' AS empty, zeroblob(3) AS zeros",
      nulls: "SELECT NULL AS nothing",
      "equal names": "SELECT 1 AS a, 2 AS a, 3 AS b",
      "no names": "SELECT 1, 'x', count(*) FROM (SELECT 1 UNION SELECT 2)",
      join: "SELECT x.a, y.a FROM (SELECT 1 AS a) x, (SELECT 2 AS a) y",
      several: "CREATE TABLE s (v); INSERT INTO s VALUES (1), (2); SELECT v FROM s ORDER BY v",
      "trailing comment": "SELECT 1 AS a; -- the end",
      "trailing semicolons": "SELECT 1 AS a;;  ;",
      comment: "/* first */ SELECT 1 AS a -- x",
      empty: "",
      "only a comment": "-- nothing",
      "syntax error": "SELEC 1",
      unfinished: "SELECT (1",
      "no such table": "SELECT * FROM missing",
      "no such column": "SELECT missing FROM t",
      "no such function": "SELECT missing(1)",
      "error in the second statement": "INSERT INTO s VALUES (3); SELECT * FROM missing",
      "what the first one wrote": "SELECT count(*) AS n FROM s",
      "not null": "INSERT INTO t (a) VALUES (1)",
      unique: "INSERT INTO t (b, c) VALUES ('x', 1), ('x', 1)",
      check: "INSERT INTO t (b, c) VALUES ('y', 0)",
      "primary key": "INSERT INTO t (id, b, c) VALUES (1, 'p', 1), (1, 'q', 1)",
      "nothing was written": "SELECT count(*) AS n FROM t",
      mismatch: "INSERT INTO t (id, b) VALUES ('text', 'z')",
      returning: "INSERT INTO t (b, c) VALUES ('r', 2) RETURNING id, b, c",
      begin: "BEGIN TRANSACTION",
      commit: "COMMIT",
      rollback: "ROLLBACK",
      savepoint: "SAVEPOINT x",
      attach: "ATTACH DATABASE ':memory:' AS other",
      vacuum: "VACUUM",
      "pragma table_list": "SELECT name FROM pragma_table_list WHERE name = 't'",
      "pragma table_info": "PRAGMA table_info(s)",
      "pragma journal_mode": "PRAGMA journal_mode = DELETE",
      "pragma user_version": "PRAGMA user_version",
      "pragma foreign_keys": "PRAGMA foreign_keys",
      "internal table": "CREATE TABLE _cf_other (a)",
      "temp table": "CREATE TEMP TABLE temporary (a)",
      tables: "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('s', 't') ORDER BY name",
      json: `SELECT json_extract('{"a":[1,2]}', '$.a[1]') AS v, '{"b":"c"}' ->> 'b' AS w`,
      fts: "CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('hello world'); SELECT body FROM f WHERE f MATCH 'hello'",
      math: "SELECT sqrt(16) AS r, power(2, 10) AS p",
      trigger:
        "CREATE TRIGGER log AFTER INSERT ON s BEGIN INSERT INTO t (b, c) VALUES ('by trigger', 9); END; INSERT INTO s VALUES (9); SELECT b FROM t WHERE c = 9",
      recursive:
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i FROM n",
      "foreign keys are on":
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p (id)); INSERT INTO c VALUES (5)",
      "double-quoted text": 'SELECT "not a column" AS v',
      "double-quoted text in a table":
        'CREATE TABLE q (a TEXT DEFAULT "x", b TEXT CHECK (b <> "zz")); INSERT INTO q (b) VALUES ("y"); SELECT * FROM q WHERE b = "y"',
      "double-quoted text in a change": 'UPDATE q SET b = "it" WHERE a = "x" RETURNING a, b',
      "double-quoted text that a check refuses": 'INSERT INTO q (b) VALUES ("zz")',
      "double-quoted text in an index": 'CREATE INDEX q_nothing ON q ("no column")',
      "double-quoted text in a view": 'CREATE VIEW qv AS SELECT "text" AS t; SELECT t FROM qv',
      "a column in double quotes": 'SELECT "a" FROM q',
      explain: "EXPLAIN QUERY PLAN SELECT * FROM s",
      load_extension: "SELECT load_extension('x')",
    };
    for (const [name, text] of Object.entries(texts)) await notes.note(name, () => all(text));
    await notes.note("too few bindings", () => all("SELECT ?, ?", 1));
    await notes.note("too many bindings", () => all("SELECT ?", 1, 2));
    await notes.note("a named parameter", () => all("SELECT :a AS v", 1));
    await notes.note("numbered parameters", () => all("SELECT ?2 AS b, ?1 AS a", 1, 2));
    await notes.note("bindings and several statements", () =>
      all("INSERT INTO s VALUES (10); SELECT ? AS v", 1),
    );
    await notes.note("a question mark in text", () => all("SELECT '?' AS v, ? AS w", 1));
    await notes.note("text too big", () => all("SELECT length(?)", "x".repeat(2_200_000)));
    await notes.note("a statement that is no text", () => all(12 as never));
    await notes.note("columnNames", () => sql.exec("SELECT 1 AS a, 2 AS b, 3 AS a").columnNames);
    await notes.note("columnNames of an insert", () => sql.exec("INSERT INTO s VALUES (1)").columnNames);
    await notes.note("raw", () => [...sql.exec("SELECT 1 AS a, x'01' AS b UNION ALL SELECT 2, NULL").raw()]);
    await notes.note("raw().toArray", () => sql.exec("SELECT 1 AS a, 2 AS a").raw().toArray());
    await notes.note("one", () => sql.exec("SELECT 1 AS a").one());
    await notes.note("one of none", () => sql.exec("SELECT 1 AS a WHERE 0").one());
    await notes.note("one of two", () => sql.exec("SELECT 1 AS a UNION SELECT 2").one());
    await notes.note("next", () => {
      const cursor = sql.exec("SELECT 1 AS a");
      return [cursor.next(), cursor.next(), cursor.next()];
    });
    await notes.note("one position for all", () => {
      const cursor = sql.exec("SELECT 1 AS a UNION SELECT 2 UNION SELECT 3");
      const first = cursor.next();
      return [first, cursor.raw().next(), cursor.toArray(), cursor.toArray()];
    });
    await notes.note("for of", () => Array.from(sql.exec("SELECT 1 AS a UNION SELECT 2"), (row) => row.a));
    await notes.note("two cursors of one statement", () => {
      const [one, two] = [0, 1].map(() => sql.exec("SELECT v FROM s WHERE v < 3 ORDER BY v"));
      return [one.next(), two.next(), one.toArray()];
    });
    await notes.note("rowsWritten", () => {
      const cursor = sql.exec("CREATE TABLE w (v)");
      cursor.toArray();
      const insert = sql.exec("INSERT INTO w VALUES (1), (2), (3)");
      insert.toArray();
      return insert.rowsWritten;
    });
    await notes.note("rowsRead", () => {
      const cursor = sql.exec("SELECT v FROM w");
      cursor.toArray();
      return [cursor.rowsRead, cursor.rowsWritten];
    });
    await notes.note("databaseSize", () => sql.databaseSize > 0);
    await notes.note(
      "a row's prototype",
      () => Object.getPrototypeOf(sql.exec("SELECT 1 AS a").one()) === Object.prototype,
    );
    await notes.note("an error's members", () => {
      try {
        all("SELECT * FROM missing");
      } catch (error) {
        return [error instanceof Error, Object.keys(error)];
      }
    });
    await notes.note("deleteAll", () => this.ctx.storage.deleteAll());
    await notes.note("after deleteAll", () =>
      all("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_%' ESCAPE '\\'"),
    );
    return notes.steps;
  }

  async transactions() {
    const { storage } = this.ctx;
    const { sql } = storage;
    const notes = new Notes();
    sql.exec("CREATE TABLE t (v)");
    const rows = () => Array.from(sql.exec("SELECT v FROM t ORDER BY v"), (row) => row.v);
    const insert = (value: unknown) => void sql.exec("INSERT INTO t VALUES (?)", value);
    await notes.note("result", () => storage.transactionSync(() => (insert(1), "result")));
    await notes.note("throw", () =>
      storage.transactionSync(() => {
        insert(2);
        storage.kv.put("k", 2);
        throw new RangeError("undo");
      }),
    );
    await notes.note("after throw", async () => [rows(), storage.kv.get("k")]);
    await notes.note("nested", () =>
      storage.transactionSync(() => {
        insert(3);
        try {
          storage.transactionSync(() => {
            insert(4);
            throw new Error("inner");
          });
        } catch (error) {
          return [show(error), rows()];
        }
      }),
    );
    await notes.note("after nested", rows);
    await notes.note("a promise", async () => storage.transactionSync(async () => insert(5)));
    await notes.note("after a promise", rows);
    await notes.note("async", () =>
      storage.transaction(async (inner) => {
        await inner.put("a", 1);
        insert(6);
        return inner.get("a");
      }),
    );
    await notes.note("async throw", () =>
      storage.transaction(async (inner) => {
        await inner.put("a", 2);
        insert(7);
        throw new Error("undo");
      }),
    );
    await notes.note("after async throw", async () => [rows(), await storage.get("a")]);
    await notes.note("async rollback", () =>
      storage.transaction(async (inner) => {
        await inner.put("a", 3);
        inner.rollback();
        return "rolled back";
      }),
    );
    await notes.note("after rollback", () => storage.get("a"));
    await notes.note("use after rollback", () =>
      storage.transaction(async (inner) => {
        inner.rollback();
        await inner.put("a", 4);
      }),
    );
    await notes.note("after use", () => storage.get("a"));
    let kept: { get(key: string): Promise<unknown> } | undefined;
    await storage.transaction(async (inner) => void (kept = inner));
    await notes.note("use after the end", () => kept?.get("a"));
    await notes.note("not a function", () => storage.transactionSync("x" as never));
    return notes.steps;
  }

  /** What SQLite's functions about the last change tell, after each kind of change. */
  async counters() {
    const { storage } = this.ctx;
    const { sql } = storage;
    const notes = new Notes();
    const ALL = "SELECT changes() AS changed, total_changes() AS total, last_insert_rowid() AS last";
    const after = async (step: string, work: () => unknown, query = ALL) => {
      await notes.note(step, async () => {
        await work();
        return sql.exec(query).one();
      });
      // What was written is committed in between.
      await storage.sync();
      await notes.note(`${step}, later`, () => sql.exec(query).one());
    };
    // There, an alarm is a row of a table with numbers, and its number shows.
    const afterAlarm = (step: string, work: () => unknown) =>
      after(step, work, "SELECT changes() AS changed, total_changes() AS total");
    const exec = (text: string) => () => void sql.exec(text).toArray();
    await after("nothing", () => undefined);
    await after("a table", exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v)"));
    await after("three rows", exec("INSERT INTO t (v) VALUES (1), (2), (3)"));
    await after("an update of two", exec("UPDATE t SET v = 0 WHERE id < 3"));
    await after("an update of none", exec("UPDATE t SET v = 0 WHERE id > 30"));
    await after("a row with RETURNING", exec("INSERT INTO t (v) VALUES (4) RETURNING id"));
    await after("a row with a number", exec("INSERT INTO t VALUES (70, 0)"));
    await after("a replaced row", exec("REPLACE INTO t VALUES (70, 1)"));
    await after("a read", exec("SELECT * FROM t"));
    await after("kv put", () => storage.kv.put("a", 1));
    await after("kv put again", () => storage.kv.put("a", 2));
    await after("kv get", () => storage.kv.get("a"));
    await after("kv delete", () => storage.kv.delete("a"));
    await after("kv delete of nothing", () => storage.kv.delete("a"));
    await after("two rows deleted", exec("DELETE FROM t WHERE id < 3"));
    await after("put", () => storage.put("b", 1));
    await after("put of three", () => storage.put({ c: 1, d: 2, e: 3 }));
    await after("get", () => storage.get("b"));
    await after("delete of two", () => storage.delete(["c", "d"]));
    await after("list", () => storage.list());
    await after("a row again", exec("INSERT INTO t (v) VALUES (5)"));
    await after("sync", () => storage.sync());
    await afterAlarm("an alarm", () => storage.setAlarm(Date.now() + 1e9));
    await afterAlarm("another alarm", () => storage.setAlarm(Date.now() + 2e9));
    await afterAlarm("an update of none after it", exec("UPDATE t SET v = 0 WHERE id > 300"));
    await afterAlarm("no alarm", () => storage.deleteAlarm());
    await after("a row after the alarm", exec("INSERT INTO t (v) VALUES (6)"));
    await notes.note("a row that is refused", exec("INSERT INTO t VALUES (1000, 1), (1000, 2)"));
    await after("after it", () => undefined);
    await after("two statements in one text", exec("UPDATE t SET v = 7 WHERE id = 3; UPDATE t SET v = 8"));
    await notes.note("read in one text with a change", () =>
      sql.exec("DELETE FROM t WHERE id = 3; SELECT changes() AS changed").raw().toArray(),
    );
    await notes.note("read while rows are written", () =>
      sql.exec("INSERT INTO t (v) VALUES (changes()), (last_insert_rowid()) RETURNING v").raw().toArray(),
    );
    await notes.note(
      "names of columns",
      () =>
        sql.exec("SELECT changes(), Total_Changes ( ) > 1, (last_insert_rowid()), 'changes()' -- changes()")
          .columnNames,
    );
    await after("rows of a selection", exec("INSERT INTO t (v) SELECT v + 100 FROM t WHERE changes() > 0"));
    await after("a synchronous transaction", () =>
      storage.transactionSync(() => void sql.exec("INSERT INTO t (v) VALUES (6), (7)")),
    );
    await after("an empty synchronous transaction", () => storage.transactionSync(() => undefined));
    await after("a synchronous transaction that throws", () => {
      try {
        storage.transactionSync(() => {
          sql.exec("INSERT INTO t (v) VALUES (8)");
          throw new Error("undo");
        });
      } catch {
        // As meant.
      }
    });
    await after("a transaction", () =>
      storage.transaction(async (inner) => {
        await inner.put("f", 1);
        sql.exec("INSERT INTO t (v) VALUES (9)");
      }),
    );
    await after("a transaction that is rolled back", () =>
      storage.transaction(async (inner) => {
        sql.exec("INSERT INTO t (v) VALUES (10)");
        inner.rollback();
      }),
    );
    await after("an index", exec("CREATE INDEX i ON t (v)"));
    await after("a trigger", exec("CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET v = 1; END"));
    await after("a row with the trigger", exec("INSERT INTO t (v) VALUES (11)"));
    await after("a column", exec("ALTER TABLE t ADD COLUMN w"));
    await after("all rows deleted", exec("DELETE FROM t"));
    await after("a table less", exec("DROP TABLE t"));
    await after("an alarm before deleteAll", () => storage.setAlarm(Date.now() + 1e9));
    await after("deleteAll", () => storage.deleteAll());
    await after("a table after deleteAll", exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v)"));
    await after("an update after deleteAll", exec("UPDATE t SET v = 0"));
    await after("a row after deleteAll", exec("INSERT INTO t (v) VALUES (1)"));
    return notes.steps;
  }

  alarm() {}

  /** What statements about the schema and the settings of the database do, and which are refused. */
  async guard() {
    const { sql } = this.ctx.storage;
    const notes = new Notes();
    const all = (text: string) => {
      try {
        return sql.exec(text).toArray();
      } catch (error) {
        const message = String(error.message).replace(/ at offset \d+/, "");
        return /SQLITE_AUTH$|not authorized|state.storage.transaction|ctx.storage.transaction/.test(message)
          ? "refused"
          : message;
      }
    };
    const texts = [
      "CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT)",
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT CHECK (a <> 'no'), p REFERENCES p (id))",
      "CREATE INDEX i ON t (a)",
      "INSERT INTO p (name) VALUES ('Ann')",
      "INSERT INTO t (a, p) VALUES ('one', 1), ('Two', 1)",
      // Changes of tables.
      "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5",
      "ALTER TABLE t ADD COLUMN c AS (b * 2)",
      "ALTER TABLE t RENAME COLUMN b TO d",
      "ALTER TABLE t DROP COLUMN c",
      "ALTER TABLE t DROP COLUMN a",
      "ALTER TABLE t RENAME TO u",
      "SELECT * FROM u",
      "ALTER TABLE u RENAME TO t",
      "ALTER TABLE t RENAME TO _cf_t",
      "ALTER TABLE _cf_KV RENAME TO mine",
      "ALTER TABLE t RENAME COLUMN d TO _cf_d",
      "ALTER TABLE t RENAME COLUMN _cf_d TO d",
      "ALTER TABLE missing ADD COLUMN b",
      "CREATE TABLE _cf_mine (a)",
      "CREATE TABLE _CF_mine (a)",
      "CREATE INDEX _cf_i ON t (a)",
      "CREATE VIEW _cf_v AS SELECT 1",
      "CREATE TRIGGER _cf_g AFTER INSERT ON t BEGIN SELECT 1; END",
      "CREATE VIRTUAL TABLE _cf_f USING fts5 (a)",
      "SELECT * FROM _cf_KV",
      "SELECT 1 AS _cf_KV",
      "CREATE TEMP TABLE temporary (a)",
      "CREATE TEMPORARY VIEW temporary AS SELECT 1",
      "CREATE TEMP TRIGGER temporary AFTER INSERT ON t BEGIN SELECT 1; END",
      "CREATE TABLE temp.temporary (a)",
      "SELECT * FROM sqlite_temp_master",
      "CREATE VIRTUAL TABLE r USING rtree (id, low, high)",
      "CREATE VIRTUAL TABLE ri USING rtree_i32 (id, low, high)",
      "INSERT INTO r VALUES (1, 2, 3)",
      "SELECT * FROM r WHERE low > 1",
      "CREATE VIRTUAL TABLE f USING FTS5 (body)",
      "CREATE VIRTUAL TABLE fv USING fts5vocab (f, row)",
      "INSERT INTO f VALUES ('a b a')",
      "SELECT * FROM fv",
      "CREATE VIRTUAL TABLE f4 USING fts4 (body)",
      "CREATE VIRTUAL TABLE d USING dbstat",
      "SELECT count(*) AS n FROM dbstat",
      "SELECT * FROM generate_series(1, 2)",
      "SELECT value FROM json_each('[1,2]')",
      "REINDEX",
      "REINDEX t",
      "VACUUM",
      "VACUUM INTO 'other.db'",
      "ATTACH 'other.db' AS other",
      "DETACH main",
      // Statistics.
      "ANALYZE",
      "ANALYZE t",
      "ANALYZE i",
      "ANALYZE main",
      "ANALYZE _cf_KV",
      "SELECT tbl, idx, stat FROM sqlite_stat1 WHERE tbl = 't'",
      "UPDATE sqlite_stat1 SET stat = '5 5' WHERE tbl = 't'",
      "DELETE FROM sqlite_stat1",
      "DROP TABLE sqlite_stat1",
      "UPDATE sqlite_master SET sql = ''",
      "PRAGMA optimize",
      "PRAGMA optimize = 0x10002",
      "PRAGMA optimize('x')",
      // Descriptions.
      "PRAGMA table_info(t)",
      "PRAGMA table_info('t')",
      "PRAGMA table_xinfo(t)",
      "PRAGMA table_info",
      "PRAGMA table_info(_cf_KV)",
      "PRAGMA table_info(missing)",
      "SELECT name FROM pragma_table_info('t')",
      "PRAGMA main.table_info(t)",
      "PRAGMA index_list(t)",
      "PRAGMA index_list",
      "PRAGMA index_list(_cf_KV)",
      "PRAGMA index_info(i)",
      "PRAGMA index_xinfo(i)",
      "PRAGMA foreign_key_list(t)",
      "PRAGMA foreign_key_check",
      "PRAGMA foreign_key_check(t)",
      "PRAGMA foreign_key_check(_cf_KV)",
      "PRAGMA quick_check",
      "PRAGMA quick_check(1)",
      "PRAGMA quick_check(t)",
      "PRAGMA quick_check(_cf_KV)",
      "PRAGMA integrity_check",
      "PRAGMA data_version = 5",
      "PRAGMA page_size = 8192",
      "PRAGMA page_count",
      "SELECT * FROM pragma_page_count()",
      "PRAGMA max_page_count",
      "PRAGMA max_page_count = 65536",
      "PRAGMA cache_size = 5",
      "PRAGMA synchronous = OFF",
      "PRAGMA journal_mode",
      "PRAGMA user_version = 3",
      "PRAGMA application_id",
      "PRAGMA schema_version",
      "PRAGMA compile_options",
      "PRAGMA function_list",
      "PRAGMA pragma_list",
      "PRAGMA module_list",
      "PRAGMA database_list",
      "PRAGMA collation_list",
      "PRAGMA hard_heap_limit = 1024",
      "PRAGMA writable_schema = ON",
      "PRAGMA trusted_schema = ON",
      "PRAGMA temp_store = 0",
      "PRAGMA wal_checkpoint",
      "PRAGMA incremental_vacuum",
      "PRAGMA query_only = ON",
      "PRAGMA cell_size_check",
      "PRAGMA unknown_pragma",
      // Settings.
      "PRAGMA foreign_keys",
      "PRAGMA foreign_keys = OFF",
      "INSERT INTO t (a, p) VALUES ('nobody', 99)",
      "PRAGMA foreign_keys",
      "DELETE FROM t WHERE p = 99",
      "PRAGMA foreign_keys = on",
      "PRAGMA foreign_keys = 2",
      "PRAGMA foreign_keys = maybe",
      "PRAGMA foreign_keys('yes')",
      "PRAGMA defer_foreign_keys",
      "PRAGMA defer_foreign_keys = TRUE",
      "PRAGMA defer_foreign_keys",
      "PRAGMA defer_foreign_keys = 'off'",
      "PRAGMA ignore_check_constraints = ON",
      "INSERT INTO t (a) VALUES ('no')",
      "PRAGMA ignore_check_constraints = OFF",
      "INSERT INTO t (a) VALUES ('no')",
      "PRAGMA quick_check",
      "DELETE FROM t WHERE a = 'no'",
      "PRAGMA case_sensitive_like = TRUE",
      "SELECT a FROM t WHERE a LIKE 'two'",
      "PRAGMA case_sensitive_like = FALSE",
      "SELECT a FROM t WHERE a LIKE 'two'",
      "PRAGMA legacy_alter_table",
      "PRAGMA legacy_alter_table = ON",
      "PRAGMA legacy_alter_table = OFF",
      "PRAGMA recursive_triggers",
      "PRAGMA recursive_triggers = 1",
      "PRAGMA recursive_triggers = 0",
      "PRAGMA reverse_unordered_selects = ON",
      "SELECT id FROM t",
      "PRAGMA reverse_unordered_selects = OFF",
      "PRAGMA REVERSE_UNORDERED_SELECTS",
      // Functions.
      "SELECT sqlite_version() AS v WHERE 0",
      "SELECT load_extension('x')",
      "SELECT sqlite_offset(a) AS v FROM t",
      "SELECT edit('x')",
      "SELECT readfile('x')",
      "SELECT randomblob(0) AS v, random() IS NULL AS w, hex('a') AS x, soundex('a') AS y",
      "SELECT unixepoch(0) AS v, strftime('%Y', 0) AS w, date(0, 'unixepoch') AS x",
      "SELECT rtreecheck('r') AS v",
      "SELECT stddev(id) FROM t",
      "SELECT uuid() AS v",
      "SELECT regexp('a', 'b') AS v",
      "SELECT 'a' REGEXP 'a' AS v",
      "SELECT 'a' MATCH 'a' AS v",
      "SELECT likelihood(1, 0.5) AS v, unlikely(1) AS w",
      "SELECT timediff('2024-01-01', '2023-01-01') AS v, octet_length('é') AS w, concat('a', 1) AS x",
      "SELECT string_agg(a, ',') AS v FROM t",
      "SELECT iif(1, 2, 3) AS v, sign(-2) AS w, unhex('00') AS x, format('%d', 5) AS y",
      "SELECT jsonb('[1]') AS v",
      "SELECT json_pretty('[1]') AS v",
      "SELECT total(id) AS v, group_concat(a) AS w FROM t",
      "SELECT rank() OVER (ORDER BY id) AS v, lag(id) OVER (ORDER BY id) AS w FROM t",
      "SELECT bm25(f) AS v FROM f WHERE f MATCH 'a'",
      "SELECT highlight(f, 0, '<', '>') AS v, snippet(f, 0, '<', '>', '', 5) AS w FROM f WHERE f MATCH 'a'",
      "EXPLAIN SELECT 1 WHERE 0",
      "BEGIN",
      "COMMIT",
      "END",
      "ROLLBACK",
      "SAVEPOINT x",
      "RELEASE x",
    ];
    const counts = new Map<string, number>();
    for (const text of texts) {
      const count = (counts.get(text) ?? 0) + 1;
      counts.set(text, count);
      await notes.note(count === 1 ? text : `${text} (${count})`, () => all(text));
    }
    return notes.steps;
  }

  /** A violated reference that is deferred: the transaction fails when it ends. */
  async deferred() {
    const notes = new Notes();
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p (id))");
    const violate = () => {
      sql.exec("PRAGMA defer_foreign_keys = ON");
      sql.exec("INSERT INTO c VALUES (5)");
    };
    await notes.note("in a transaction", () => this.ctx.storage.transactionSync(violate));
    await notes.note("repaired", () =>
      this.ctx.storage.transactionSync(() => {
        violate();
        sql.exec("INSERT INTO p VALUES (5)");
      }),
    );
    await notes.note("rows", () =>
      sql.exec("SELECT (SELECT count(*) FROM p) AS p, (SELECT count(*) FROM c) AS c").toArray(),
    );
    return notes.steps;
  }

  /** Writes, then throws: what it wrote stays. */
  async writeAndThrow() {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS kept (v)");
    this.ctx.storage.sql.exec("INSERT INTO kept VALUES (1)");
    this.ctx.storage.put("kept", "value");
    await Promise.resolve();
    throw new RangeError("after writing");
  }

  async kept() {
    return [this.ctx.storage.sql.exec("SELECT v FROM kept").toArray(), await this.ctx.storage.get("kept")];
  }
}

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SqliteConnection } from "../sqlite-file/connection.ts";
import { ReservedNames } from "./reserved-names.ts";
import { StatementGuard } from "./statement-guard.ts";

let connection: SqliteConnection;
let guard: StatementGuard;

beforeEach(() => {
  connection = SqliteConnection.open(":memory:");
  connection.exec(
    "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT); CREATE TABLE _signalbox_meta (a, b)",
  );
  connection.exec("CREATE VIRTUAL TABLE found USING fts5 (text)");
  guard = new StatementGuard(new ReservedNames(["_signalbox", "_cf"]));
  connection.setAuthorizer(guard.authorize);
});
afterEach(() => connection.close());

function run(text: string): void {
  const { statement } = guard.compile(() => connection.prepare(text));
  guard.run(() => statement.all([]));
}

/** All names in the database and in the temporary database. */
function names(): string[] {
  const text = "SELECT name FROM sqlite_schema UNION SELECT name FROM sqlite_temp_schema";
  return connection
    .prepare(text)
    .all([])
    .map(({ name }) => String(name));
}

describe("reserved names", () => {
  it.each([
    "ALTER TABLE note RENAME TO _signalbox_note",
    "alter table main.note rename to _SignalBox_note;",
    'ALTER TABLE note RENAME TO "_signalbox_note"',
    "ALTER TABLE note RENAME TO'_signalbox_note'",
    "ALTER TABLE note RENAME TO[_signalbox_note]",
    "ALTER TABLE note RENAME TO`_SIGNALBOX_NOTE`-- end",
    "ALTER TABLE note RENAME TO/* to **/ -- note\n\t_signalbox_note",
    "ALTER TABLE note RENAME TO \uFEFF_signalbox_note",
    // The shadow tables would be _signalbox_data, _signalbox_idx, ….
    "ALTER TABLE found RENAME TO _signalbox",
    "ALTER TABLE found RENAME TO _signalbox/**/",
    'ALTER TABLE found RENAME TO "_Signalbox"',
    "CREATE VIRTUAL TABLE _signalbox USING fts5 (a)",
    "CREATE VIRTUAL TABLE _signalbox_found USING fts5 (a)",
    "CREATE TABLE _signalbox_x (a)",
    'CREATE TABLE main."_SIGNALBOX_x" (a)',
    "CREATE TABLE [_signalbox_x] AS SELECT 1",
    "CREATE VIEW _signalbox_v AS SELECT 1",
    "CREATE INDEX _signalbox_i ON note (text)",
    'CREATE UNIQUE INDEX IF NOT EXISTS main."_Signalbox_i" ON note (text)',
    "CREATE TRIGGER _signalbox_t AFTER INSERT ON note BEGIN SELECT 1; END",
    "CREATE TABLE _cf_x (a)",
    "ALTER TABLE note RENAME/**/TO _CF_note",
    "ALTER TABLE _signalbox_meta RENAME COLUMN a TO c",
    'ALTER TABLE main."_signalbox_meta" ADD COLUMN c',
    "ALTER TABLE [_SIGNALBOX_META] DROP COLUMN a",
    "ALTER TABLE _signalbox_meta RENAME TO mine",
    "DROP TABLE main.'_signalbox_meta'",
    "INSERT INTO main.`_signalbox_meta` VALUES (1, 2)",
    "REPLACE INTO _signalbox_meta VALUES (1, 2)",
    "UPDATE _signalbox_meta SET a = 1",
    "CREATE INDEX i ON _signalbox_meta (a)",
  ])("cannot be used by a guarded statement: %s", (text) => {
    const before = names();
    expect(() => run(text)).toThrow();
    expect(guard.refusal).toMatch(/belongs to the runtime$/);
    expect(names()).toEqual(before);
  });

  it.each([
    "ALTER TABLE note RENAME TO signalbox_note",
    "ALTER TABLE note RENAME TO my_signalbox_note",
    "ALTER TABLE note RENAME TO _signalboxes",
    "ALTER TABLE note RENAME COLUMN text TO _signalbox_text",
    "ALTER TABLE note RENAME text TO _cf_text",
    "ALTER TABLE note RENAME COLUMN text TO words",
    "ALTER TABLE note ADD COLUMN to_whom TEXT DEFAULT '_signalbox_'",
    "ALTER TABLE found RENAME TO others",
    "CREATE TABLE _signal (a)",
    "CREATE VIEW v AS SELECT * FROM _signalbox_meta",
    "SELECT 'ALTER TABLE note RENAME TO _signalbox_note'",
  ])("are the only refused names: %s", (text) => {
    expect(() => run(text)).not.toThrow();
    expect(guard.refusal).toBeNull();
  });
});

describe("temporary tables", () => {
  it.each([
    "CREATE TEMP TABLE mine (a)",
    "CREATE TABLE temp.mine (a)",
    "CREATE TEMPORARY TABLE _signalbox_meta AS SELECT 1",
    "CREATE TEMP VIEW `_signalbox_meta` AS SELECT 1",
    "CREATE TEMP TRIGGER t AFTER INSERT ON note BEGIN SELECT 1; END",
  ])("are refused, so that no name hides one of the runtime: %s", (text) => {
    const before = names();
    expect(() => run(text)).toThrow();
    expect(guard.refusal).toMatch(/^temporary tables/);
    expect(names()).toEqual(before);
  });
});

describe("virtual tables", () => {
  it.each(["fts4 (a)", "dbstat", "fts3 (a)", "geopoly"])("of %s are refused", (module) => {
    expect(() => run(`CREATE VIRTUAL TABLE v USING ${module}`)).toThrow();
    expect(guard.refusal).toMatch(/^virtual tables of/);
  });

  it.each(["dbstat", "main.dbstat", "DBSTAT('main', 1)"])("that show pages are not read: %s", (table) => {
    expect(() => run(`SELECT * FROM ${table}`)).toThrow();
    expect(guard.refusal).toMatch(/is not available$/);
  });

  it.each(["fts5 (a)", "rtree (id, low, high)", "RTREE_I32 (id, low, high)"])(
    "of %s are allowed",
    (module) => {
      run(`CREATE VIRTUAL TABLE v USING ${module}`);
      run("SELECT * FROM v");
      run("DROP TABLE v");
    },
  );
});

describe("PRAGMA", () => {
  const compile = (text: string) => guard.compile(() => connection.prepare(text));

  it.each([
    ["ignore_check_constraints = ON", false],
    ["case_sensitive_like('yes')", false],
    ["foreign_keys = 0", false],
    ["table_info(note)", false],
    ["quick_check(5)", false],
    ["page_size", false],
    ["optimize", true],
    ["optimize(0x10002)", true],
    ["defer_foreign_keys = 'on'", true],
  ])("%s is allowed; it needs a transaction: %s", (text, isWrite) => {
    expect(compile(`PRAGMA ${text}`).isWrite).toBe(isWrite);
    run(`PRAGMA ${text}`);
  });

  it.each([
    "page_size = 512",
    "foreign_keys = 2",
    "recursive_triggers = maybe",
    "optimize('x')",
    "table_info",
    "table_info(_signalbox_meta)",
    "quick_check(_signalbox_meta)",
    "index_list('_cf_KV')",
    "integrity_check",
    "writable_schema = ON",
    "journal_mode",
    "user_version",
    "toString",
    "__proto__",
  ])("%s is refused", (text) => {
    expect(() => run(`PRAGMA ${text}`)).toThrow();
    expect(guard.refusal).toMatch(/ (?:is not allowed|needs a value)$/);
  });
});

it("ANALYZE counts all tables, and needs a transaction", () => {
  const { statement, isWrite } = guard.compile(() => connection.prepare("ANALYZE"));
  expect(isWrite).toBe(true);
  guard.run(() => statement.all([]));
  expect(names()).toContain("sqlite_stat1");
});

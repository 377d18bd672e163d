/**
 * SQL in agent code and in the SQL console. Forbidden statements stay forbidden in every spelling: other files,
 * settings, transactions, extensions, the runtime's tables and names, and in the console every write and every second
 * statement. Other instances are not affected, and console results are limited.
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pick, type Random } from "../../support/ledger/random.ts";
import { startTestServer } from "../../support/test-server.ts";
import { checkLog } from "../support/check-log.ts";
import { chance, mutate, repeat, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";

interface Input {
  readonly way: "agent" | "console";
  readonly instance: string;
  /** `@FILE@` stands for a path in a folder that must stay empty. */
  readonly sql: string;
  readonly isForbidden: boolean;
}

/** More than the console returns. */
const MAX_ANSWER_BYTES = 6 * 1024 * 1024;
const FUZZED_AGENT = join(import.meta.dirname, "../../fixtures/fuzzed-agent.ts");
const FORBIDDEN = [
  "ATTACH '@FILE@' AS x",
  "ATTACH DATABASE '@FILE@' AS x",
  "ATTACH ':memory:' AS x",
  "DETACH main",
  "VACUUM",
  "VACUUM INTO '@FILE@'",
  "VACUUM main INTO '@FILE@'",
  "PRAGMA journal_mode = DELETE",
  "PRAGMA writable_schema = ON",
  "PRAGMA main.synchronous = 0",
  "PRAGMA temp_store_directory = '/'",
  "PRAGMA trusted_schema(1)",
  "PRAGMA user_version = 5",
  "PRAGMA locking_mode = EXCLUSIVE",
  "PRAGMA wal_checkpoint(TRUNCATE)",
  "BEGIN",
  "BEGIN IMMEDIATE",
  "COMMIT",
  "ROLLBACK",
  "END",
  "SAVEPOINT x",
  "RELEASE x",
  "ROLLBACK TO x",
  "SELECT load_extension('@FILE@')",
  "SELECT 1 WHERE load_extension('@FILE@', 'x') IS NULL",
  "SELECT 1;;; ATTACH '@FILE@' AS x",
  "UPDATE sqlite_schema SET sql = ''",
  "DELETE FROM sqlite_master",
  "INSERT INTO sqlite_schema VALUES ('table','x','x',0,'')",
  "CREATE TABLE _signalbox_mine (a)",
  'CREATE TABLE "_SIGNALBOX_x" (a)',
  "CREATE VIEW _signalbox_v AS SELECT 1",
  "CREATE TEMP VIEW _signalbox_state AS SELECT 1",
  "CREATE TEMP TABLE _signalbox_meta (a)",
  "CREATE TABLE temp.[_signalbox_meta] (a)",
  "CREATE INDEX _signalbox_i ON note (text)",
  "CREATE TRIGGER _signalbox_t AFTER INSERT ON note BEGIN SELECT 1; END",
  "CREATE VIRTUAL TABLE _signalbox USING fts5 (a)",
  "CREATE VIRTUAL TABLE _signalbox_v USING fts5 (a)",
  "ALTER TABLE note RENAME TO _signalbox_note",
  'ALTER TABLE main.note RENAME TO "_signalbox_note"',
  "ALTER TABLE note RENAME TO [_signalbox_note]",
  "ALTER TABLE note RENAME TO `_signalbox_note`",
  "ALTER TABLE note RENAME TO _signalbox",
  "ALTER TABLE _signalbox_meta RENAME COLUMN key TO x",
  'DROP TABLE main."_signalbox_meta"',
  "INSERT INTO main.`_signalbox_meta` DEFAULT VALUES",
  "SELECT 1; ALTER TABLE note RENAME TO _signalbox_note",
  "SELECT writefile('@FILE@', 'x')",
  "SELECT readfile('/etc/passwd')",
  "SELECT fts3_tokenizer('x', x'00')",
];
/** An agent may run several statements at once, each checked separately; the console runs one. */
const SEVERAL = ["SELECT 1; SELECT 2", "SELECT 1;;SELECT 2"];
const WRITES = [
  "INSERT INTO note (text) VALUES ('x')",
  "DELETE FROM note",
  "CREATE TABLE t (a)",
  "DROP TABLE note",
  "UPDATE note SET text = ''",
  "REPLACE INTO note VALUES (1, 'x')",
  "CREATE INDEX i ON note (text)",
  "CREATE TEMP TABLE tt (a)",
  "REINDEX",
  "ANALYZE",
];
/** Exceeds the console's time or memory; the response must be limited. */
const HEAVY = [
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, randomblob(100000) FROM n",
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT group_concat(hex(randomblob(9999))) FROM n",
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n ORDER BY random()",
  "SELECT hex(zeroblob(1000000000))",
  "SELECT zeroblob(2147483647)",
  "SELECT printf('%.*c', 2000000000, 'x')",
  "SELECT replace(hex(zeroblob(900000)), '0', hex(zeroblob(900000)))",
  `SELECT ${"(".repeat(900)}1${")".repeat(900)}`,
  `SELECT ${"1+".repeat(5000)}1`,
  `SELECT 1 ${"UNION ALL SELECT 1 ".repeat(400)}`,
  `SELECT 'x' LIKE '${"%x".repeat(5000)}'`,
  `SELECT ${Array.from({ length: 1900 }, (_, i) => `'${"y".repeat(40)}' AS c${i}`).join(",")}`,
  `SELECT json('${"[".repeat(5000)}')`,
];
const READS = [
  "SELECT 1",
  "SELECT * FROM note",
  "SELECT * FROM sqlite_schema",
  "VALUES (1), (2)",
  "PRAGMA table_info(note)",
  "SELECT json('{}')",
  "EXPLAIN SELECT 1",
  "SELECT text FROM note WHERE id IN (SELECT id FROM note)",
  "WITH c(x) AS (SELECT 1) SELECT x FROM c",
];
const WORDS = [
  "SELECT",
  "FROM",
  "note",
  "*",
  "(",
  ")",
  ",",
  ";",
  "'",
  '"',
  "`",
  "[",
  "]",
  "--",
  "/*",
  "*/",
  "x'00'",
  "?",
  ":a",
  "@b",
  "$c",
  "1e999",
  "NULL",
  "UNION ALL",
  "JOIN",
  "ATTACH",
  "PRAGMA",
  "WHERE",
  "LIKE",
  "GLOB",
  "\0",
  "\xff",
  "CAST",
  "AS",
  "INTEGER",
  "abs",
  "printf('%s')",
  "ORDER BY",
  "LIMIT -1",
  "RETURNING *",
  "INSERT INTO",
  "VALUES",
  "_signalbox_state",
];

export const agentSqlTarget = defineTarget<Input>({
  name: "agent-sql",
  summary: "SQL of agents and of the console",
  shortRun: 300,
  width: 4,
  generate(random) {
    const way = chance(random, 0.02) ? "console" : "agent";
    const instance = `fuzzed-${upTo(random, 4)}`;
    if (way === "console" && chance(random, 0.15))
      return { way, instance, sql: pick(random, HEAVY), isForbidden: false };
    if (chance(random, 0.5)) {
      const sql = disguise(
        random,
        pick(random, way === "console" ? [...FORBIDDEN, ...WRITES, ...SEVERAL] : FORBIDDEN),
      );
      return { way, instance, sql, isForbidden: true };
    }
    const usual = pick(random, [...READS, ...WRITES]);
    const sql = chance(random, 0.4)
      ? repeat(random, 12, () => pick(random, WORDS)).join(" ")
      : mutate(random, usual);
    return { way, instance, sql: sql === "" ? " " : sql, isForbidden: false };
  },
  open,
});

/** The same statement in a spelling that a text filter would not recognize. */
function disguise(random: Random, sql: string): string {
  // Quoted parts stay unchanged; other letters change their case.
  const cased = sql
    .split("'")
    .map((part, i) =>
      i % 2 === 1 || part.includes('"')
        ? part
        : part
            .split("")
            .map((letter) => (chance(random, 0.3) ? letter.toLowerCase() : letter))
            .join(""),
    )
    .join("'");
  const gap = () => pick(random, [" ", "\n", "\t", " /* x */ ", "/**/ ", " -- x\n", "  ", "\f"]);
  const spaced = cased
    .split("'")
    .map((part, i) => (i % 2 === 1 ? part : part.replaceAll(" ", () => gap())))
    .join("'");
  return `${pick(random, ["", "", " ", "/* SELECT 1 */", "-- SELECT\n", "\n\t"])}${spaced}${pick(random, ["", "", ";", " ; ", "-- end", "/* end"])}`;
}

async function open(): Promise<Arena<Input>> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-fuzz-sql-"));
  const file = join(folder, "escaped");
  const server = await startTestServer({ file: { agents: { modules: [FUZZED_AGENT] } } });
  const call = (name: string, method: string, ...args: unknown[]) =>
    server.api("POST", `/agents/fuzzed-agent/${name}/rpc/${method}`, args);
  await call("sentinel", "write", "untouched");
  for (let i = 0; i < 4; i++) await call(`fuzzed-${i}`, "write", "first");
  return {
    async attempt({ way, instance, sql, isForbidden }) {
      const text = sql.replaceAll("@FILE@", file);
      const { status, body } =
        way === "agent"
          ? await call(instance, "runSql", text)
          : await server.api("POST", `/accounts/default/agents/fuzzed-agent/instances/${instance}/sql`, {
              sql: text,
            });
      const code = (body as { errors: { code: number }[] }).errors[0]?.code;
      // Rows and bytes of a response are limited.
      if (JSON.stringify(body).length > MAX_ANSWER_BYTES) throw new Error("an answer without a bound");
      if (isForbidden && status === 200) throw new Error(`carried out: ${JSON.stringify(body)}`);
      // An error that the agent's code does not catch fails the call.
      if (status !== 200 && code !== (way === "agent" ? 3007 : 3011))
        throw new Error(`${status} with code ${code}: ${JSON.stringify(body).slice(0, 500)}`);
    },
    async check() {
      // The failure is logged.
      checkLog(server.logs, ["SqlError"]);
      if (existsSync(file)) throw new Error("a file was written outside of the data folder");
      const { body } = await call("sentinel", "notes");
      const notes = JSON.stringify((body as { result: unknown }).result);
      if (notes !== '["untouched"]') throw new Error(`another instance has ${notes}`);
    },
    async close() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

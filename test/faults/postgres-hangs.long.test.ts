/** PostgreSQL is down when the server starts, or stops responding while the server runs. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { callEcho, codeOf, createToken, sendRequest } from "../support/send-request.ts";
import { type ServerProcess, spawnCli, startServerProcess } from "../support/server-process.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";

let postgres: TestPostgres;
let dataDir: string;
let server: ServerProcess;

beforeAll(async () => {
  postgres = await openTestPostgres();
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-hangs-"));
});
afterAll(async () => {
  await postgres.drop();
  await rm(dataDir, { recursive: true, force: true });
});

const args = () => ["--data-dir", dataDir, "--database-url", postgres.url];
const start = () => startServerProcess(args(), { env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN }, cwd: dataDir });

const send = (method: string, path: string, body?: unknown) => sendRequest(server, method, path, body);

it("the start waits for PostgreSQL and logs one line about it", async () => {
  await postgres.stop("fast");
  const child = spawnCli(["serve", "--json", "--port", "0", ...args()], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    cwd: dataDir,
  });
  let log = "";
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  await expect.poll(() => log).toContain("cannot connect to PostgreSQL");
  expect([output, log.trim().split("\n").length]).toEqual(["", 1]);
  // A supervisor's "reload" ends no server that is about to start.
  child.kill("SIGHUP");
  await postgres.start();
  await expect.poll(() => output).toContain('"url"');
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  expect(await exit).toEqual([0, null]);
});

it("requests that need a hanging PostgreSQL are refused, calls are answered, and everything works when it responds again", async () => {
  server = await start();
  expect((await createToken(server)).status).toBe(200);
  await postgres.freeze();
  const waiting = [createToken(server), createToken(server), send("GET", "/accounts/default/tags/changes")];
  let settled = 0;
  for (const answer of waiting) void answer.finally(() => (settled += 1));
  for (let i = 0; i < 20; i++) expect((await callEcho(server)).status).toBe(200);
  expect(settled).toBe(0);
  for (const answer of await Promise.all(waiting))
    expect([answer.status, codeOf(answer)]).toEqual([503, expect.toBeOneOf([7013, 7014])]);
  const ready = await send("GET", "/readyz");
  expect([ready.status, ready.text]).toEqual([
    503,
    expect.stringContaining("database: PostgreSQL cannot be reached"),
  ]);
  expect((await callEcho(server)).status).toBe(200);
  await postgres.thaw();
  await expect.poll(async () => (await send("GET", "/readyz")).status).toBe(200);
  expect((await createToken(server)).status).toBe(200);
  expect((await send("GET", "/accounts/default/tags/changes")).status).toBe(200);
  expect(await server.end("SIGTERM")).toBe(0);
});

it("the server reads its settings again if a write that it reported as unknown took place", async () => {
  server = await start();
  const hand = new Client({ connectionString: postgres.url });
  await hand.connect();
  await hand.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM set_config('lock_timeout', '0', true); PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
    CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON token DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
    SELECT pg_advisory_lock(7)`);
  const tokensBefore = (await hand.query("SELECT id FROM token")).rowCount ?? 0;
  const write = createToken(server);
  const isCommitting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
  await expect.poll(async () => (await hand.query(isCommitting)).rowCount).toBe(1);
  await postgres.freeze();
  const answer = await write;
  expect([answer.status, codeOf(answer)]).toEqual([503, 7014]);
  await postgres.thaw();
  await hand.query("SELECT pg_advisory_unlock(7)");
  await expect.poll(() => server.stderr()).toContain("the settings in memory were out of date");
  await hand.query("DROP TRIGGER wait ON token");
  await hand.end();
  const listed = await send("GET", "/accounts/default/tokens");
  expect(listed.body.result.length).toBe(tokensBefore + 1);
  expect(await server.end("SIGTERM")).toBe(0);
});

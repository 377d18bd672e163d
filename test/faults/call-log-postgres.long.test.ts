/** The call log in PostgreSQL while the server process or PostgreSQL itself is killed in the middle of writes. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { readMetric } from "../support/read-metric.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { callEcho, sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";
import { waitUntil } from "../support/wait-until.ts";

const LOGS = "/accounts/default/ai-gateway/gateways/default/logs";

let postgres: TestPostgres;
let dataDir: string;
let server: ServerProcess;

beforeAll(async () => {
  postgres = await openTestPostgres();
});
afterAll(() => postgres.drop());
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-faults-"));
  server = await start();
  await sendRequest(server, "DELETE", LOGS);
  counted = await countedCalls();
});
afterEach(async () => {
  await server.kill();
  await rm(dataDir, { recursive: true, force: true });
});

/** By earlier tests: usage outlives rows. */
let counted = 0;

function start(args: readonly string[] = []): Promise<ServerProcess> {
  const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, DATABASE_URL: postgres.url, WEBHOOK_SECRET: "x" };
  return startServerProcess(["--data-dir", dataDir, ...args], { env, cwd: dataDir });
}

const makeCall = async () => (await callEcho(server)).headers.get("gw-aig-log-id") ?? "";

async function makeCalls(count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(...(await Promise.all(Array.from({ length: 20 }, makeCall))));
  return ids;
}

const read = async (path: string) => (await sendRequest(server, "GET", path)).body.result;

async function listedIds(): Promise<string[]> {
  const ids: string[] = [];
  for (let page = 1; ; page++) {
    const rows: { id: string }[] = await read(`${LOGS}?per_page=1000&page=${page}`);
    ids.push(...rows.map(({ id }) => id));
    if (rows.length < 1000) return ids.sort();
  }
}

async function countedCalls(): Promise<number> {
  const [all]: { calls: number }[] = await read("/accounts/default/ai-gateway/usage");
  return all?.calls ?? 0;
}

/** The ids in the table, read beside the server. */
async function storedIds(): Promise<string[]> {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  const { rows } = await client.query<{ id: string }>("SELECT id FROM call_log ORDER BY id");
  await client.end();
  return rows.map(({ id }) => id);
}

it("a killed process keeps the written rows, and its queue only is lost: no row is doubled or half counted", async () => {
  const early = await makeCalls(100);
  await waitUntil(storedIds, (ids) => ids.length >= early.length);
  const late: string[] = [];
  let isKilled = false;
  const callers = Array.from({ length: 10 }, async () => {
    while (!isKilled) late.push(await makeCall().catch(() => ""));
  });
  await waitUntil(storedIds, (ids) => ids.length >= early.length + 200);
  const seen = await storedIds();
  await server.end("SIGKILL");
  isKilled = true;
  await Promise.all(callers);
  const killedAt = new Set([...early, ...late]);
  server = await start();
  const ids = await listedIds();
  expect(new Set(ids).size).toBe(ids.length);
  expect(seen.filter((id) => !ids.includes(id))).toEqual([]);
  // A row may belong to a call whose answer was cut off by the kill.
  expect(ids.filter((id) => !killedAt.has(id)).length).toBeLessThanOrEqual(callers.length);
  expect((await countedCalls()) - counted).toBe(ids.length);
});

it("calls go on while PostgreSQL is killed again and again, and each is stored once", async () => {
  const ids: string[] = [];
  let isDone = false;
  const callers = Array.from({ length: 4 }, async () => {
    while (!isDone) ids.push(await makeCall());
  });
  for (let round = 0; round < 3; round++) {
    const before = ids.length;
    await waitUntil(
      () => ids.length,
      (length) => length >= before + 200,
    );
    await postgres.stop("kill");
    const during = ids.length;
    await waitUntil(
      () => ids.length,
      (length) => length >= during + 20,
    );
    await postgres.start();
  }
  isDone = true;
  await Promise.all(callers);
  expect(ids).not.toContain("");
  await waitUntil(
    async () => (await sendRequest(server, "GET", LOGS)).status,
    (status) => status === 200,
  );
  expect(await readMetric(server, "signalbox_call_log_dropped_total")).toBe(0);
  expect(await listedIds()).toEqual(ids.toSorted());
  expect((await countedCalls()) - counted).toBe(ids.length);
});

/** Stored calls of a real server process that is stopped or killed. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CallReader } from "../../packages/signalbox/src/engines/call-log/call-reader.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { callEcho, sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
const GATEWAY = { accountId: "default", gatewayId: "default" };
const NEWEST = {
  filters: [],
  search: "",
  orderBy: "createdAt",
  direction: "desc",
  offset: 0,
  limit: 1000,
} as const;

let dataDir: string;
let server: ServerProcess;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-faults-"));
  server = await start();
});
afterEach(async () => {
  await server.kill();
  await rm(dataDir, { recursive: true, force: true });
});

function start(): Promise<ServerProcess> {
  return startServerProcess(["--data-dir", dataDir], { env, cwd: dataDir });
}

const makeCall = async () => (await callEcho(server)).headers.get("gw-aig-log-id") ?? "";

/** Several calls at a time; resolves with the log ids when every response has been read. */
async function makeCalls(count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(...(await Promise.all(Array.from({ length: 20 }, makeCall))));
  return ids.sort();
}

const read = async (path: string) => (await sendRequest(server, "GET", path)).body.result;

async function storedIds(): Promise<string[]> {
  const rows: { id: string }[] = await read(
    "/accounts/default/ai-gateway/gateways/default/logs?per_page=1000",
  );
  return rows.map((row) => row.id).sort();
}

async function countedCalls(): Promise<number> {
  const [all]: { calls: number }[] = await read("/accounts/default/ai-gateway/usage");
  return all?.calls ?? 0;
}

it("no stored call is lost if the server is stopped directly after the last response", async () => {
  const ids = await makeCalls(200);
  expect(await server.end("SIGTERM")).toBe(0);
  server = await start();
  expect(await storedIds()).toEqual(ids);
  expect(await countedCalls()).toBe(ids.length);
});

it("a killed process keeps the written rows; later rows are complete or absent", async () => {
  const early = await makeCalls(100);
  // The files are read directly: the server must write by itself within its flush interval.
  const reader = new CallReader(join(dataDir, "logs"));
  await waitUntil(
    () => reader.list(GATEWAY, NEWEST).total,
    (total) => total >= early.length,
  );
  reader.close();
  const late = await makeCalls(40);
  await server.end("SIGKILL");
  server = await start();
  const stored = await storedIds();
  expect(stored.filter((id) => early.includes(id))).toEqual(early);
  expect(stored.every((id) => early.includes(id) || late.includes(id))).toBe(true);
  expect(new Set(stored).size).toBe(stored.length);
  expect(await countedCalls()).toBe(stored.length);
});

/** The log goes to a file on a full disk: log lines are lost, and nothing else. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openSmallDisk } from "../support/small-disk.ts";
import { ROOT_TOKEN } from "../support/test-server.ts";

/** Runs a command with its standard error redirected to the file. */
const logTo = (file: string) => ["sh", "-c", 'exec "$@" 2>>"$0"', file];

async function start(through: readonly string[]): Promise<ServerProcess> {
  const dataDir = await mkdtemp(`${tmpdir()}/signalbox-log-`);
  const server = await startServerProcess(["--data-dir", dataDir, "--log-level", "trace"], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    cwd: tmpdir(),
    through,
  });
  onTestFinished(async () => {
    if (server.child.exitCode === null && server.child.signalCode === null) await server.end("SIGKILL");
    await rm(dataDir, { recursive: true, force: true });
  });
  return server;
}

/** Failed requests and starts are logged. */
async function use({ url }: ServerProcess): Promise<void> {
  const call = (path: string, init: RequestInit = {}) =>
    fetch(url + path, {
      ...init,
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
    });
  for (let i = 0; i < 20; i++) {
    const body = JSON.stringify({ resource_type: "worker", resource_id: "w", tags: { v: String(i) } });
    expect((await call("/accounts/default/tags", { method: "PUT", body })).status).toBe(200);
    expect((await call("/healthz")).status).toBe(200);
    expect((await call("/nowhere")).status).toBe(404);
  }
}

it("the server serves and stops cleanly if no log line can be written", async () => {
  const server = await start(logTo("/dev/full"));
  await use(server);
  expect(await server.end("SIGTERM")).toBe(0);
});

it("the server serves while the log's disk is full and writes lines again when there is space", async () => {
  const disk = await openSmallDisk(1);
  onTestFinished(() => disk.drop());
  const server = await start([...disk.through, ...logTo(`${disk.folder}/log`)]);
  await disk.fill();
  await use(server);
  const linesOnFullDisk = (await disk.read("log")).split("\n").length;
  await disk.makeRoom();
  expect(await server.end("SIGTERM")).toBe(0);
  expect((await disk.read("log")).split("\n").length).toBeGreaterThan(linesOnFullDisk);
});

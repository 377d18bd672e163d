/** The log goes to a file on a full disk: lines are lost, and nothing else. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openSmallDisk } from "../support/small-disk.ts";
import { ROOT_TOKEN } from "../support/test-server.ts";

/** Runs a command with its standard error in the file. */
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

/** Everything that is refused with a cause, or started, is worth a line. */
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

it("serves, and ends in order, when not one line can be written", async () => {
  const server = await start(logTo("/dev/full"));
  await use(server);
  expect(await server.end("SIGTERM")).toBe(0);
});

it("serves while the disk of its log is full, and writes lines again when there is room", async () => {
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

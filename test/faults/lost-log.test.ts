/** The log goes to a file on a full disk: log lines are lost, and nothing else. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openSmallDisk } from "../support/small-disk.ts";

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
    await server.kill();
    await rm(dataDir, { recursive: true, force: true });
  });
  return server;
}

/** Failed requests and starts are logged. */
async function use(server: ServerProcess): Promise<void> {
  for (let i = 0; i < 20; i++) {
    const body = { resource_type: "worker", resource_id: "w", tags: { v: String(i) } };
    expect((await sendRequest(server, "PUT", "/accounts/default/tags", body)).status).toBe(200);
    expect((await sendRequest(server, "GET", "/healthz")).status).toBe(200);
    expect((await sendRequest(server, "GET", "/nowhere")).status).toBe(404);
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

it("the server serves and stops cleanly if nobody reads its output and its log any more", async () => {
  const server = await start([]);
  server.child.stdout.destroy();
  server.child.stderr.destroy();
  await use(server);
  expect(await server.end("SIGTERM")).toBe(0);
});

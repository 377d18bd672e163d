/** A backup of a server under load, then kill -9, a lost folder, an interrupted restore, and a restore. */
import { once } from "node:events";
import { existsSync, globSync, readdirSync, readFileSync, statSync, watch, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import {
  BUDGET,
  callGateway,
  configOf,
  expectRestored,
  GATEWAY,
  startTraffic,
} from "../support/backup-traffic.ts";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { runCliHere } from "../support/run-cli.ts";
import { sendRequest } from "../support/send-request.ts";
import { runCliProcess, spawnCli, startServerProcess } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SECRET } from "../support/webhook-sender.ts";

let folder: string;
let dataDir: string;
let config: string;
let file: string;
let provider: ProviderPeer;
const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET, HELD_WEBHOOK_SECRET: SECRET };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-test-"));
  dataDir = join(folder, "data");
  file = join(folder, "backup.tar");
  config = join(folder, "config.json");
  provider = await startProvider((_, response) =>
    sendJson(response, 200, { model: "m", usage: { prompt_tokens: 1, completion_tokens: 6 } }),
  );
  await writeFile(config, JSON.stringify(patiently(configOf(provider.url))));
});
afterAll(async () => {
  await provider.close();
  await rm(folder, { recursive: true, force: true });
});

const start = (more: Record<string, string> = {}) =>
  startServerProcess(["--data-dir", dataDir, "--config", config], { env: { ...env, ...more } });
const cli = (...args: string[]) => runCliProcess(args, { env, cwd: folder });
/** The same in this process, which is cheaper. */
const run = (...args: string[]) => runCliHere(args, { cwd: folder, env });

it("what was acknowledged before a backup began is there after a restore, and work goes on", async () => {
  const server = await start({ HOLD: "yes" });
  await sendRequest(server, "PUT", GATEWAY, { authentication: true, ...BUDGET });
  const created = await sendRequest(server, "POST", "/accounts/default/tokens", {
    name: "calls",
    permissions: ["gateway.run"],
  });
  const token: string = created.body.result.token;
  const session = await logIn(server.url);
  expect(await isLoggedIn(server.url, session)).toBe(true);
  const traffic = startTraffic([server.url], token, SECRET);
  await waitUntil(
    traffic.soFar,
    ({ entities, tagged, calls }) => Math.min(entities.length, tagged.length, calls) >= 20,
  );
  const before = traffic.soFar();
  const backup = await cli("backup", file, "--data-dir", dataDir, "--config", config);
  expect(backup).toMatchObject({ code: 0, stderr: "" });
  expect(backup.stdout).toContain(
    "Not in it, but needed after a restore: SIGNALBOX_ROOT_TOKEN, WEBHOOK_SECRET",
  );
  await server.end("SIGKILL");
  await traffic.stop();
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await rm(dataDir, { recursive: true });

  await killRestore();
  const refused = await runCliProcess(["serve", "--data-dir", dataDir, "--config", config], { env });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/a restore into the data folder .* was interrupted/);
  const restored = await cli("restore", file, "--data-dir", dataDir);
  expect(restored).toMatchObject({ code: 0, stderr: "" });

  const again = await start();
  await expectRestored(again.url, before);
  expect(await callGateway(again.url, token)).toBe(200);
  expect(await isLoggedIn(again.url, session)).toBe(false);
  expect(await again.end("SIGTERM")).toBe(0);
  const databases = globSync(join(dataDir, "**/*.db"));
  expect(databases.length).toBeGreaterThan(before.entities.length);
  for (const path of databases) {
    const database = new DatabaseSync(path, { readOnly: true });
    expect(database.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    database.close();
  }
});

/** Killed as soon as it has begun to write. On a busy machine the restore may be faster than the kill; then another one is started. */
async function killRestore(): Promise<void> {
  for (;;) {
    await mkdir(dataDir);
    const child = spawnCli(["restore", file, "--data-dir", dataDir], { env, cwd: folder });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const watcher = watch(dataDir, (_, name) => {
      if (name === "restore-incomplete") child.kill("SIGKILL");
    });
    await ended;
    watcher.close();
    if (existsSync(join(dataDir, "restore-incomplete"))) return;
    expect(child.exitCode).toBe(0);
    await rm(dataDir, { recursive: true });
  }
}

it("a damaged backup and a folder that is not empty are refused, and nothing is changed", async () => {
  const other = join(folder, "other");
  const bytes = readFileSync(file);
  const damaged = join(folder, "damaged.tar");
  bytes.writeUInt8(bytes.readUInt8(5000) ^ 1, 5000);
  writeFileSync(damaged, bytes);
  const refused = await run("restore", damaged, "--data-dir", other);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(
    /^signalbox: .*damaged\.tar is damaged: signalbox\.db differs from its SHA-256\n$/,
  );
  expect(existsSync(other)).toBe(false);
  const full = await run("restore", file, "--data-dir", dataDir);
  expect(full.code).toBe(1);
  expect(full.stderr).toMatch(/is not empty; give a new folder with --data-dir, or --replace/);
  expect(existsSync(join(dataDir, "restore-incomplete"))).toBe(false);
});

it("a stopped server is backed up from its folder, and its content can be replaced by a backup", async () => {
  const second = join(folder, "second.tar");
  const options = ["--data-dir", dataDir, "--config", config];
  expect(await run("backup", second, "--without-logs", ...options)).toMatchObject({ code: 0 });
  const clash = await run("backup", second, ...options);
  expect(clash).toMatchObject({ code: 2, stderr: expect.stringContaining("exists") });
  const replaced = await run("restore", second, "--data-dir", dataDir, "--replace", "--json");
  expect(replaced).toMatchObject({ code: 0, stderr: "" });
  const { replaced_to: former, counts } = JSON.parse(replaced.stdout);
  expect(counts.call_log_days).toBe(0);
  expect(existsSync(join(former, "signalbox.db"))).toBe(true);
  expect(existsSync(join(dataDir, "logs"))).toBe(false);
});

it("a backup that is interrupted, or whose reader is gone, fails and leaves no file", async () => {
  const empty = join(folder, "empty");
  await mkdir(empty);
  // A server that sends the beginning of a backup and then nothing.
  const stalled = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/x-tar" });
    response.write(readFileSync(file).subarray(0, 4096));
  }).listen(0, "127.0.0.1");
  await once(stalled, "listening");
  const url = `http://127.0.0.1:${(stalled.address() as AddressInfo).port}`;
  const backup = (...args: string[]) =>
    spawnCli(["backup", ...args, "--url", url, "--token", "x"], { env, cwd: empty });

  const interrupted = backup("interrupted.tar");
  let message = "";
  interrupted.stderr.setEncoding("utf8").on("data", (text: string) => (message += text));
  const part = () => readdirSync(empty).find((name) => name.endsWith(".part"));
  await waitUntil(
    () => (part() === undefined ? 0 : statSync(join(empty, part() ?? "")).size),
    (size) => size > 0,
  );
  interrupted.kill("SIGINT");
  const [code] = (await once(interrupted, "close")) as [number];
  expect([code, message]).toEqual([1, "signalbox: interrupted by SIGINT\n"]);

  const piped = backup("-");
  piped.stdout.destroy();
  const [closed] = (await once(piped, "close")) as [number];
  expect(closed).toBe(1);
  expect(readdirSync(empty)).toEqual([]);
  stalled.closeAllConnections();
  stalled.close();
});

it("a name that cannot be used is refused before the server is asked", async () => {
  const nowhere = ["--url", "http://127.0.0.1:9", "--token", "x"];
  await mkdir(join(folder, "a folder"));
  for (const [name, reason] of [
    ["a folder", "is not a file"],
    ["missing/backup.tar", "missing does not exist"],
    [file, "exists; give another name, or --overwrite"],
  ] as const)
    expect(await run("backup", name, ...nowhere)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(reason),
    });
  const foreign = join(folder, "a folder");
  const refused = await run("backup", "x.tar", "--data-dir", foreign);
  expect(refused.stderr).toMatch(/has no database to back up\n$/);
  expect(readdirSync(foreign)).toEqual([]);
});

async function logIn(url: string): Promise<string> {
  const { body } = await sendRequest({ url }, "POST", "/login-links");
  const response = await fetch(url + body.result.path, { redirect: "manual" });
  return response.headers.get("set-cookie")?.split(";")[0] ?? "";
}

async function isLoggedIn(url: string, cookie: string): Promise<boolean> {
  return (await fetch(`${url}/accounts`, { headers: { cookie } })).status === 200;
}

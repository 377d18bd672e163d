/** A second process that finds the data folder or the database in use leaves no trace. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { runCliProcess, type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openTestPostgres } from "../support/test-postgres.ts";

const WEBHOOK_SECRET = "secret-of-the-refused-process";
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-refused-"));
  cleanUps.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function start(...args: string[]): Promise<ServerProcess> {
  const server = await startServerProcess(args, { env: { WEBHOOK_SECRET } });
  cleanUps.push(() => server.end("SIGTERM"));
  return server;
}

const refused = (...args: string[]) =>
  runCliProcess(["serve", "--json", "--port", "0", ...args], { env: { WEBHOOK_SECRET } });

it("a data folder in use is refused, and its files stay unchanged", async () => {
  const folder = await newFolder();
  await start("--data-dir", folder);
  const token = () => readFile(join(folder, "root-token"), "utf8");
  const before = [await readdir(folder), await token()];
  const { code, stderr } = await refused("--data-dir", folder);
  expect([code, stderr]).toEqual([1, expect.stringContaining("in use by the process")]);
  expect([await readdir(folder), await token()]).toEqual(before);
});

it("a database in use is refused, and no token is created", async () => {
  const postgres = await openTestPostgres();
  cleanUps.push(() => postgres.drop());
  await start("--data-dir", await newFolder(), "--database-url", postgres.url);
  const folder = await newFolder();
  const { code, stderr } = await refused("--data-dir", folder, "--database-url", postgres.url);
  expect([code, stderr]).toEqual([1, expect.stringContaining("in use by another Signalbox process")]);
  expect((await readdir(folder)).filter((name) => !name.startsWith("lock"))).toEqual([]);
});

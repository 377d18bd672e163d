/** An instance with a damaged file fails alone, and its callers learn nothing about files. */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";

const WORK_AGENTS = join(import.meta.dirname, "../fixtures/work-agents.ts");
const CLOCK = pathToFileURL(join(import.meta.dirname, "../support/clock-preload.ts")).href;

it("calls of a damaged instance get an internal error, and other instances work", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-damaged-"));
  const args = ["--data-dir", dataDir, "--agents", TEST_AGENTS];
  const options = { env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN } };
  const first = await startServerProcess(args, options);
  const before = await new RawClient(`${first.url}/agents/counter/damaged`).opened();
  expect(await before.call("increment", 1)).toMatchObject({ success: true });
  await first.end("SIGTERM");
  for (const file of globSync("agents/**/*.db", { cwd: dataDir }))
    await writeFile(join(dataDir, file), "this is not a database, and long enough to be read".repeat(100));

  const second = await startServerProcess(args, options);
  const client = await new RawClient(`${second.url}/agents/counter/damaged`).opened();
  const { success, error } = await client.call("read").catch(() => ({ success: false, error: "closed" }));
  expect(success).toBe(false);
  expect(error).not.toContain(dataDir);
  const response = await fetch(`${second.url}/agents/counter/damaged`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  expect(response.status).toBe(500);
  const text = await response.text();
  for (const secret of [dataDir, "not a database", ".db"]) expect(text).not.toContain(secret);

  const other = await new RawClient(`${second.url}/agents/counter/other`).opened();
  expect(await other.call("increment", 1)).toMatchObject({ success: true, result: 1 });
  other.close();
  await second.end("SIGTERM");
  await rm(dataDir, { recursive: true, force: true });
});

describe("damaged instances with due work", () => {
  const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
  /** Two minutes later: the work has become due. */
  const later = { env: { ...env, NODE_OPTIONS: `--import ${CLOCK}`, SIGNALBOX_TEST_CLOCK_MS: "120000" } };
  /** At least as many as the file of one of them has pages. */
  const INSTANCES = Array.from({ length: 16 }, (_, i) => `planned-${i}`);
  let root: string;
  /** The data folder as the server left it, with instances that have the same work. */
  let before: string;
  /** Paths of their files in the data folder. */
  let files: readonly string[];

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "signalbox-damaged-"));
    before = join(root, "before");
    const server = await startServerProcess(["--data-dir", before, "--agents", WORK_AGENTS], { env });
    for (const name of INSTANCES) {
      const client = await new RawClient(`${server.url}/agents/worker/${name}`).opened();
      for (let i = 0; i < 10; i++)
        expect(await client.call("plan", 60, `later-${i}`)).toMatchObject({ success: true });
      expect(await client.call("plan", 60, "broken")).toMatchObject({ success: true });
      client.close();
    }
    await server.end("SIGTERM");
    files = globSync("agents/**/*.db", { cwd: before });
    expect(files).toHaveLength(INSTANCES.length);
  });

  afterAll(async () => rm(root, { recursive: true, force: true }));

  /** A server on a copy of the folder with changed files. */
  async function startWith(change: (paths: readonly string[]) => void): Promise<ServerProcess> {
    const folder = await mkdtemp(join(root, "changed-"));
    await cp(before, folder, { recursive: true });
    change(files.map((file) => join(folder, file)));
    return startServerProcess(["--data-dir", folder, "--agents", WORK_AGENTS], later);
  }

  async function expectOthersToContinue(server: ServerProcess): Promise<void> {
    // Long enough for thousands of failures if there were no pause.
    await sleep(300);
    const other = await new RawClient(`${server.url}/agents/worker/other`).opened();
    expect(await other.call("done")).toMatchObject({ success: true, result: [] });
    other.close();
    expect(await server.end("SIGTERM")).toBe(0);
    expect(server.stderr().split("\n").length).toBeLessThan(100);
  }

  it("failed instances are not retried for a while, whichever page is damaged", async () => {
    const server = await startWith((paths) => {
      const pagesOf = (content: Buffer) => content.length / content.readUInt16BE(16);
      const [pages = 0] = paths.map((path) => pagesOf(readFileSync(path)));
      expect(pages).toBeGreaterThan(5);
      expect(pages).toBeLessThanOrEqual(paths.length);
      for (const [page, path] of paths.slice(0, pages).entries()) {
        const content = readFileSync(path);
        expect(pagesOf(content)).toBe(pages);
        const at = page * content.readUInt16BE(16);
        // Not the header of the first page; without it the file would not be a database.
        writeFileSync(path, content.fill(0xa5, Math.max(at, 100), at + content.readUInt16BE(16)));
      }
    });
    await expectOthersToContinue(server);
  });

  it("failed instances are not retried for a while if their rows can be read but not changed", async () => {
    const actions = ["UPDATE", "DELETE", "UPDATE OF next_at"];
    const server = await startWith((paths) => {
      for (const [i, action] of actions.entries()) {
        const database = new DatabaseSync(paths[i] ?? "");
        database.exec(
          `CREATE TRIGGER damage BEFORE ${action} ON _signalbox_schedule BEGIN SELECT raise(ABORT, 'damaged'); END`,
        );
        database.close();
      }
    });
    const reported = () =>
      new Set(
        [...server.stderr().matchAll(/"(planned-\d+)".*cannot be read or written/g)].map(([, name]) => name),
      );
    await expect.poll(() => reported().size).toBe(actions.length);
    await expectOthersToContinue(server);
  });

  it("the work is done when the instance can start", async () => {
    const server = await startWith(() => undefined);
    const client = await new RawClient(`${server.url}/agents/worker/${INSTANCES[0]}`).opened();
    await expect
      .poll(async () => (await client.call("done")).result)
      .toEqual(expect.arrayContaining(Array.from({ length: 10 }, (_, i) => `tick later-${i}`)));
    client.close();
    await server.end("SIGTERM");
  });
});

/** Another program holds a write lock on the database for longer than the server waits. */
import { mkdtemp, rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { callEcho, codeOf, createToken, sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

let dataDir: string;
let server: ServerProcess;
let intruder: DatabaseSync;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-locked-"));
  server = await startServerProcess(["--data-dir", dataDir], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    cwd: dataDir,
  });
  intruder = new DatabaseSync(join(dataDir, "signalbox.db"));
});
afterEach(async () => {
  intruder.close();
  await server.kill();
  await rm(dataDir, { recursive: true, force: true });
});

const putTag = (id: string) =>
  sendRequest(server, "PUT", "/accounts/default/tags", {
    resource_type: "worker",
    resource_id: id,
    tags: { a: "1" },
  });

it("reads are answered, writers wait and are then refused with an explanation, and writes work when the lock is released", async () => {
  expect((await putTag("before")).status).toBe(200);
  intruder.exec("BEGIN IMMEDIATE");
  let settled = 0;
  const writes = [...Array.from({ length: 200 }, (_, i) => putTag(`r${i}`)), createToken(server)].map(
    (write) => write.finally(() => (settled += 1)),
  );

  // Answered while all writers wait: a busy wait inside SQLite would block these requests.
  for (let i = 0; i < 5; i++) expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  expect([(await callEcho(server)).status, settled]).toEqual([200, 0]);

  for (const answer of await Promise.all(writes))
    expect([answer.status, codeOf(answer)]).toEqual([503, 7013]);
  const ready = await fetch(`${server.url}/readyz`);
  expect([ready.status, await ready.text()]).toEqual([
    503,
    expect.stringContaining("database: another program holds a lock on the database"),
  ]);

  intruder.exec("ROLLBACK");
  await expect.poll(async () => (await fetch(`${server.url}/readyz`)).status).toBe(200);
  expect((await putTag("after")).status).toBe(200);
  expect((await createToken(server)).status).toBe(200);
  const { body } = await sendRequest(server, "GET", "/accounts/default/tags/resources?tag=a");
  expect(body.result.map(({ id }: { id: string }) => id).sort()).toEqual(["after", "before"]);
  expect(await server.end("SIGTERM")).toBe(0);
});

it("a writer succeeds after a short lock", async () => {
  intruder.exec("BEGIN IMMEDIATE");
  const write = putTag("patient");
  for (let i = 0; i < 5; i++) expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  intruder.exec("ROLLBACK");
  expect((await write).status).toBe(200);
});

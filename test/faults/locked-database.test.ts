/** Another program holds a write lock on the database for longer than the server waits. */
import { mkdtemp, rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN } from "../support/test-server.ts";

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
  if (server.child.exitCode === null && server.child.signalCode === null) await server.end("SIGKILL");
  await rm(dataDir, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  readonly code: number | undefined;
}

async function api(method: string, path: string, body: object): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const { errors } = (await response.json()) as { errors: { code: number }[] };
  return { status: response.status, code: errors[0]?.code };
}

const putTag = (id: string) =>
  api("PUT", "/accounts/default/tags", { resource_type: "worker", resource_id: id, tags: { a: "1" } });
const createToken = () => api("POST", "/accounts/default/tokens", { name: "x", permissions: ["tags.read"] });

it("reads are answered, writers wait and are then refused with an explanation, and writes work when the lock is released", async () => {
  expect((await putTag("before")).status).toBe(200);
  intruder.exec("BEGIN IMMEDIATE");
  let settled = 0;
  const writes = [...Array.from({ length: 200 }, (_, i) => putTag(`r${i}`)), createToken()].map((write) =>
    write.finally(() => (settled += 1)),
  );

  // Answered while all writers wait: a busy wait inside SQLite would block these requests.
  for (let i = 0; i < 20; i++) expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  const call = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "hello" }] }),
  });
  expect([call.status, settled]).toEqual([200, 0]);

  for (const answer of await Promise.all(writes)) expect(answer).toEqual({ status: 503, code: 7013 });
  const ready = await fetch(`${server.url}/readyz`);
  expect([ready.status, await ready.text()]).toEqual([
    503,
    expect.stringContaining("database: another program holds a lock on the database"),
  ]);

  intruder.exec("ROLLBACK");
  await expect.poll(async () => (await fetch(`${server.url}/readyz`)).status).toBe(200);
  expect((await putTag("after")).status).toBe(200);
  expect((await createToken()).status).toBe(200);
  const response = await fetch(`${server.url}/accounts/default/tags/resources?tag=a`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  const { result } = (await response.json()) as { result: { id: string }[] };
  expect(result.map(({ id }) => id).sort()).toEqual(["after", "before"]);
  expect(await server.end("SIGTERM")).toBe(0);
});

it("a writer succeeds after a short lock", async () => {
  intruder.exec("BEGIN IMMEDIATE");
  const write = putTag("patient");
  for (let i = 0; i < 5; i++) expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  intruder.exec("ROLLBACK");
  expect((await write).status).toBe(200);
});

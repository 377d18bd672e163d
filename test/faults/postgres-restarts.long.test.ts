/** PostgreSQL is stopped and killed repeatedly under a server in use. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { type Answer, callEcho, createToken, eventIds, sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

const RESTARTS = 20;
/** Acknowledged writes between two restarts. */
const WRITES_BETWEEN = 40;

let postgres: TestPostgres;
let dataDir: string;
let server: ServerProcess;

beforeAll(async () => {
  postgres = await openTestPostgres();
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-restarts-"));
  server = await startServerProcess(["--data-dir", dataDir, "--database-url", postgres.url], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET },
    cwd: dataDir,
  });
});
afterAll(async () => {
  await server.kill();
  await postgres.drop();
  await rm(dataDir, { recursive: true, force: true });
});

const send = (method: string, path: string, body?: unknown) => sendRequest(server, method, path, body);

const sendWebhook = (entity: string, id: string) =>
  sendGeneric(server.url, entity, { id, type: "test", n: 1 }, { "x-event-id": id });

it("no acknowledged write is lost, the server keeps running, and everything works at the end", async () => {
  let isDone = false;
  let acknowledged = 0;
  const unexpected: Answer[] = [];
  /** A refused write may have taken place; only acknowledged writes are checked. */
  const isAcknowledged = (answer: Answer) => {
    // 202: a delivery that waited for the database was stored, and is handled later.
    const isDurable = answer.status === 200 || answer.status === 202;
    if (isDurable) acknowledged += 1;
    else if (answer.status !== 503) unexpected.push(answer);
    return isDurable;
  };

  const tags = new Map<string, number>();
  const tokens: { id: string; token: string }[] = [];
  const events = new Map<string, string[]>();
  let calls = 0;

  const tagClient = async (number: number) => {
    for (let version = 1; !isDone; version++) {
      const id = `r${number}`;
      const body = { resource_type: "worker", resource_id: id, tags: { v: String(version) } };
      if (isAcknowledged(await send("PUT", "/accounts/default/tags", body))) tags.set(id, version);
    }
  };
  const tokenClient = async () => {
    while (!isDone) {
      const answer = await createToken(server);
      if (isAcknowledged(answer)) tokens.push(answer.body.result);
    }
  };
  const webhookClient = async (number: number) => {
    for (let i = 0; !isDone; i++) {
      // Sometimes a new entity, whose instance must first be listed in the database.
      const entity = `e${number}x${Math.floor(i / 20)}`;
      const id = `${entity}i${i}`;
      if (isAcknowledged(await sendWebhook(entity, id)))
        events.set(entity, [...(events.get(entity) ?? []), id]);
    }
  };
  const callClient = async () => {
    while (!isDone) {
      const answer = await callEcho(server);
      if (answer.status === 200) calls += 1;
      else unexpected.push(answer);
    }
  };

  const clients = [
    tagClient(0),
    tagClient(1),
    tagClient(2),
    tokenClient(),
    webhookClient(0),
    webhookClient(1),
    callClient(),
  ];
  try {
    for (let i = 0; i < RESTARTS; i++) {
      const enough = acknowledged + WRITES_BETWEEN;
      await expect.poll(() => acknowledged, { interval: 5 }).toBeGreaterThan(enough);
      await postgres.stop(i % 2 === 0 ? "kill" : "fast");
      const callsBefore = calls;
      // Without the database, calls are served from memory, and readiness names the cause.
      await expect.poll(() => calls, { interval: 5 }).toBeGreaterThan(callsBefore + 2);
      // A restart is shorter than two seconds, and no reason to take the server away from its clients.
      if (i < 2)
        await expect
          .poll(async () => (await send("GET", "/readyz")).text)
          .toContain("database: PostgreSQL cannot be reached");
      await postgres.start();
    }
    await expect.poll(async () => (await send("GET", "/readyz")).status).toBe(200);
    await expect.poll(() => acknowledged, { interval: 5 }).toBeGreaterThan(acknowledged + WRITES_BETWEEN);
  } finally {
    isDone = true;
    await Promise.all(clients);
  }
  expect(unexpected).toEqual([]);
  expect([server.child.exitCode, server.child.signalCode]).toEqual([null, null]);

  for (const [id, version] of tags) {
    const answer = await send("GET", `/accounts/default/tags?resource_type=worker&resource_id=${id}`);
    expect(Number(answer.body.result.tags.v)).toBeGreaterThanOrEqual(version);
  }
  const listed = await listTokens();
  expect(tokens.filter(({ id }) => !listed.has(id))).toEqual([]);
  for (const { token } of [tokens[0], tokens.at(-1)].filter((one) => one !== undefined)) {
    const holder = { url: server.url, credential: token };
    expect((await sendRequest(holder, "GET", "/accounts/default/tags/keys")).status).toBe(200);
  }
  const late = "/accounts/default/webhooks/late-deliveries";
  await expect.poll(async () => (await send("GET", late)).body.result).toEqual([]);
  for (const [entity, ids] of events) {
    const stored = new Set(await eventIds(server, entity));
    expect(ids.filter((id) => !stored.has(id))).toEqual([]);
    // The instance was listed before the delivery was acknowledged.
    expect((await send("GET", `/accounts/default/agents/webhook-agent/instances/${entity}`)).status).toBe(
      200,
    );
  }
  expect(await server.end("SIGTERM")).toBe(0);
});

async function listTokens(): Promise<Set<string>> {
  const ids = new Set<string>();
  let cursor = "";
  do {
    const answer = await send("GET", `/accounts/default/tokens${cursor === "" ? "" : `?cursor=${cursor}`}`);
    const { result, result_info } = answer.body as {
      result: { id: string }[];
      result_info: { cursor?: string | null };
    };
    for (const { id } of result) ids.add(id);
    cursor = result_info.cursor ?? "";
  } while (cursor !== "");
  return ids;
}

/** A running server with a full disk: a small real file system. */
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import {
  type Answer,
  callEcho,
  codeOf,
  createToken,
  eventIds,
  sendRequest,
} from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openSmallDisk, type SmallDisk } from "../support/small-disk.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

/** The smallest allowed sizes, so that the disk fills up at the relevant writes. */
const CONFIG = {
  agents: { journalFileBytes: 64 * 1024, idleTimeoutMs: 200 },
  gateway: { logs: { maxQueuedCalls: 20 } },
  webhooks: { answerWithinMs: 2000 },
};
/** `storage_unavailable`, and the response to a sender whose delivery still waits for space when its time is over. */
const STORAGE_UNAVAILABLE = 7013;
const OVERLOADED = 7008;

/** How long the server runs idle with a full disk. */
const IDLE_MS = 3000;

let disk: SmallDisk;
let server: ServerProcess;

beforeEach(async () => {
  disk = await openSmallDisk(24);
  await disk.write("config.json", JSON.stringify(patiently(CONFIG)));
  server = await start();
});
afterEach(async () => {
  await server.kill();
  await disk.drop();
});

function start(): Promise<ServerProcess> {
  return startServerProcess(["--data-dir", `${disk.folder}/data`, "--config", `${disk.folder}/config.json`], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET },
    cwd: tmpdir(),
    through: disk.through,
  });
}

const send = (method: string, path: string, body?: unknown) => sendRequest(server, method, path, body);

/** Acknowledged writes, which must never be lost. */
const tags = new Map<string, number>();
const tokens: string[] = [];
const events: { entity: string; id: string }[] = [];
let count = 0;
let deliveries = 0;
beforeEach(() => {
  tags.clear();
  tokens.length = 0;
  events.length = 0;
  count = 0;
  deliveries = 0;
});

async function putTag(): Promise<Answer> {
  count += 1;
  const id = `r${count % 3}`;
  const body = {
    resource_type: "worker",
    resource_id: id,
    tags: { v: String(count), pad: "x".repeat(1000) },
  };
  const version = count;
  const answer = await send("PUT", "/accounts/default/tags", body);
  if (answer.status === 200) tags.set(id, version);
  return answer;
}

async function addToken(): Promise<Answer> {
  const answer = await createToken(server);
  if (answer.status === 200) tokens.push(answer.body.result.id);
  return answer;
}

/** To instances in memory, idle and new. */
async function sendWebhook(chosen?: string): Promise<Answer> {
  deliveries += 1;
  const entity = chosen ?? (deliveries % 2 === 0 ? "busy" : `e${deliveries % 7}`);
  const id = `i${deliveries}`;
  const payload = { id, type: "test", pad: "x".repeat(2000) };
  const answer = await sendGeneric(server.url, entity, payload, { "x-event-id": id });
  if (answer.status === 200 || answer.status === 202) events.push({ entity, id });
  return answer;
}

const WRITES = [putTag, addToken, () => sendWebhook()];

const sendCall = () => callEcho(server, "hello ".repeat(200));

/** On a busy machine a delivery may take longer than its sender waits: it is stored (202), or the sender is asked to retry (503). */
async function deliver(): Promise<void> {
  await expect.poll(async () => (await sendWebhook()).status, { interval: 1 }).toBeOneOf([200, 202]);
}

async function useEverything(times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    for (const use of [putTag, addToken, sendCall]) expect((await use()).status).toBe(200);
    await deliver();
  }
}

/** Fills the disk and writes until no write succeeds. */
async function fillUp(): Promise<void> {
  await disk.fill();
  for (const write of WRITES)
    await expect.poll(async () => (await write()).status, { interval: 1 }).toBe(503);
}

const showInstance = (entity: string) =>
  send("GET", `/accounts/default/agents/webhook-agent/instances/${entity}`);

/** CPU time of the server in ticks of 10 ms. */
async function cpuTicks(): Promise<number> {
  const stat = await readFile(`/proc/${server.pid}/stat`, "utf8");
  // Fields after the program name, which may contain anything: state is the first, user and system time are the 12th
  // and 13th.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

async function expectAllAcknowledged(): Promise<void> {
  const late = "/accounts/default/webhooks/late-deliveries";
  await expect.poll(async () => (await send("GET", late)).body.result).toEqual([]);
  for (const [id, version] of tags) {
    const answer = await send("GET", `/accounts/default/tags?resource_type=worker&resource_id=${id}`);
    expect(Number(answer.body.result.tags.v)).toBeGreaterThanOrEqual(version);
  }
  for (const id of tokens) expect((await send("GET", `/accounts/default/tokens/${id}`)).status).toBe(200);
  for (const entity of new Set(events.map((event) => event.entity))) {
    let ids: string[] = [];
    // Each delivery was handled once, also those whose senders were asked to retry, which may still be running.
    await expect
      .poll(async () => {
        ids = await eventIds(server, entity);
        return (await showInstance(entity)).body.result.state.eventCount - ids.length;
      })
      .toBe(0);
    const stored = new Set(ids);
    expect(ids.length).toBe(stored.size);
    expect(events.filter((event) => event.entity === entity && !stored.has(event.id))).toEqual([]);
  }
}

async function whenReady(): Promise<void> {
  await expect.poll(async () => (await send("GET", "/readyz")).status).toBe(200);
}

it("writes are refused with an explanation, calls are answered, readiness names the cause, and the server recovers when there is space", async () => {
  await useEverything(5);
  await fillUp();
  const linesBefore = server.stderr().split("\n").length;
  for (let i = 0; i < 40; i++) {
    for (const write of WRITES) {
      const answer = await write();
      expect(answer.status).toBeOneOf(write === WRITES[2] ? [200, 202, 503] : [200, 503]);
      if (answer.status === 503)
        expect(codeOf(answer)).toBeOneOf(
          write === WRITES[2] ? [STORAGE_UNAVAILABLE, OVERLOADED] : [STORAGE_UNAVAILABLE],
        );
    }
    expect((await sendCall()).status).toBe(200);
  }
  await expect
    .poll(async () => (await send("GET", "/readyz")).text)
    .toMatch(/Not ready: database: the disk is full; call log: [^;]+; agents: the disk is full/);
  expect((await send("GET", "/healthz")).status).toBe(200);
  const metrics = (await send("GET", "/metrics")).text;
  for (const part of ["database", "call log", "agents"])
    expect(metrics).toContain(`signalbox_storage_problem{part="${part}"} 1`);
  expect(metrics).toMatch(/signalbox_call_log_dropped_total [1-9]/);
  const logs = await send("GET", "/accounts/default/ai-gateway/gateways/default/logs");
  expect([logs.status, codeOf(logs)]).toEqual([503, STORAGE_UNAVAILABLE]);
  const backup = await send("POST", "/backup", {});
  expect([backup.status, codeOf(backup)]).toEqual([503, STORAGE_UNAVAILABLE]);
  // About two hundred refused requests and the background retries.
  expect(server.stderr().split("\n").length - linesBefore).toBeLessThan(30);

  await disk.makeRoom();
  await whenReady();
  await useEverything(5);
  await expectAllAcknowledged();
  expect((await send("GET", "/accounts/default/ai-gateway/gateways/default/logs")).status).toBe(200);
  expect(await server.end("SIGTERM")).toBe(0);
});

it("every sender is answered, also if the disk fills up during a delivery, and no delivery runs twice", async () => {
  await useEverything(3);
  const statuses: number[] = [];
  let isFull = false;
  const sender = async () => {
    for (let refused = 0; refused < 2;) {
      const { status } = await sendWebhook();
      statuses.push(status);
      if (isFull && status === 503) refused += 1;
    }
  };
  const senders = Array.from({ length: 12 }, sender);
  await disk.fill();
  isFull = true;
  await Promise.all(senders);
  expect(statuses.filter((status) => ![200, 202, 503].includes(status))).toEqual([]);
  await disk.makeRoom();
  await whenReady();
  await useEverything(3);
  await expectAllAcknowledged();
});

it("a new instance is created completely or not at all, however little space is left", async () => {
  await useEverything(3);
  for (const leftKib of [4, 8, 12, 16, 24, 32, 48, 64]) {
    await disk.makeRoom();
    await whenReady();
    await disk.fill(leftKib);
    for (let i = 0; i < 4; i++) {
      const { status } = await sendWebhook(`new-${leftKib}-${i}`);
      expect([leftKib, status]).toEqual([leftKib, expect.toBeOneOf([200, 202, 503])]);
    }
  }
  // A start with as little space does not complete it either.
  await server.end("SIGKILL");
  const started = await start().then(
    (unexpected) => unexpected,
    (error: unknown) => error,
  );
  if (started instanceof Error) expect(started.message).toContain("the server ended with 1");
  else await (started as ServerProcess).end("SIGKILL");
  await disk.makeRoom();
  server = await start();
  await whenReady();
  await expectAllAcknowledged();
});

it("all data can be read on a full disk, idle instances included, at almost no CPU time", async () => {
  await useEverything(5);
  // Once: the number of its events is compared.
  expect((await sendWebhook("sleeper")).status).toBeOneOf([200, 202]);
  await expect
    .poll(async () => {
      const { in_memory: isInMemory, state } = (await showInstance("sleeper")).body.result;
      return [isInMemory, state.eventCount];
    })
    .toEqual([false, 1]);
  await fillUp();
  const { result: shown } = (await showInstance("sleeper")).body;
  expect([shown.in_memory, shown.state.eventCount]).toEqual([false, 1]);
  for (const path of ["queue", "schedules", "dead-letters"]) {
    const answer = await send("GET", `/accounts/default/agents/webhook-agent/instances/sleeper/${path}`);
    expect([answer.status, path]).toEqual([200, path]);
  }
  const query = { sql: "SELECT id FROM events" };
  const found = await send("POST", "/accounts/default/agents/webhook-agent/instances/sleeper/sql", query);
  expect(found.body.result.rows).toHaveLength(1);
  // The latest write of an instance may not be stored yet: then it is not shown, and the caller gets an error.
  for (const entity of ["e1", "e3", "busy"])
    expect((await showInstance(entity)).status).toBeOneOf([200, 503]);
  for (const path of ["tokens", "tags/keys", "ai-gateway/gateways", "agents", "webhooks/deliveries"])
    expect([(await send("GET", `/accounts/default/${path}`)).status, path]).toEqual([200, path]);

  const before = await cpuTicks();
  await sleep(IDLE_MS);
  // A loop without a pause takes a hundred ticks per second.
  expect((await cpuTicks()) - before).toBeLessThan((IDLE_MS / 1000) * 30);
  await disk.makeRoom();
  await whenReady();
  await expectAllAcknowledged();
});

it("a kill on a full disk loses no acknowledged write", async () => {
  await useEverything(5);
  await fillUp();
  // All requests end with the process.
  const writes = Promise.allSettled([...WRITES, putTag].map((write) => write()));
  await server.end("SIGKILL");
  await writes;
  await disk.makeRoom();
  server = await start();
  await whenReady();
  await expectAllAcknowledged();
  await useEverything(3);
});

it("a stop on a full disk succeeds and loses no acknowledged write", async () => {
  await useEverything(5);
  await fillUp();
  const code = await server.end("SIGTERM");
  expect([0, 1]).toContain(code);
  await disk.makeRoom();
  server = await start();
  await expectAllAcknowledged();
  await useEverything(3);
});

/** The published `agents` package with its own client, on this server. */
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { connectAgent, type TestClient } from "./support/agent-client.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("agents/src/server.ts", {
    file: { agents: { access: "worker", idleTimeoutMs: 100 } },
  });
});
afterAll(() => server.remove());

/** Objects of a test have names of their own in each try: a second try finds nothing of the first. */
let tries = 0;
beforeEach(() => {
  tries += 1;
});
const own = (name: string) => `${name}-${tries}`;

const clients: TestClient<CounterState>[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

interface CounterState {
  readonly count: number;
  readonly log: readonly string[];
}

async function connect(name: string): Promise<TestClient<CounterState>> {
  const client = connectAgent<CounterState>(server, "Counter", own(name));
  clients.push(client);
  await client.ready;
  return client;
}

test("state is sent to every client, calls are answered, errors keep their message", async () => {
  const [one, two] = [await connect("state"), await connect("state")];
  expect(await one.call("add", 2)).toBe(2);
  await expect.poll(() => two.state?.count).toBe(2);
  await expect(one.call("fail")).rejects.toThrow("as asked");
  await expect(one.call("secret")).rejects.toThrow(/not callable/);
});

test("a streaming call sends its pieces in order", async () => {
  const client = await connect("stream");
  const chunks: unknown[] = [];
  const end = await client.stream("countTo", [3], (chunk) => chunks.push(chunk));
  expect([chunks, end]).toEqual([[1, 2, 3], "done"]);
});

test("SQL, other agents, the current agent", async () => {
  const client = await connect("sql");
  expect(await client.call("visit", "a")).toEqual(["a"]);
  expect(await client.call("visit", "b")).toEqual(["a", "b"]);
  expect(await client.call("visitOther", own("sql-other"), "c")).toEqual(["c"]);
  expect(await client.call("current")).toEqual({ name: own("sql"), hasConnection: true });
});

test("schedules and queue items run, also after the object left memory", async () => {
  const client = await connect("work");
  await client.call("enqueue", "queued");
  await expect.poll(() => client.state?.log).toEqual(["queued"]);
  expect(await client.call("later", 1, "scheduled")).toMatchObject({ open: 1 });
  await expect.poll(() => client.state?.log).toEqual(["queued", "scheduled"]);
});

test("sub-agents have their own state", async () => {
  const client = await connect("parent");
  expect(await client.call("child", "x", 2)).toBe(2);
  expect(await client.call("child", "x", 3)).toBe(5);
  expect(await client.call("child", "y", 1)).toBe(1);
  expect(((await client.call("children")) as string[]).toSorted()).toEqual(["x", "y"]);
});

test("the worker routes requests, and its hooks refuse", async () => {
  const name = own("http");
  expect(await (await fetch(`${server.url}/agents/counter/${name}`)).json()).toEqual({
    name,
    method: "GET",
    count: 0,
  });
  expect(await (await fetch(`${server.url}/by-name?name=${name}`)).json()).toEqual({ count: 1 });
  const refused = await fetch(`${server.url}/agents/counter/${name}`, { headers: { "x-refuse": "1" } });
  expect([refused.status, await refused.text()]).toEqual([401, "refused"]);
  const preflight = await fetch(`${server.url}/agents/counter/${name}`, { method: "OPTIONS" });
  expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
  expect((await fetch(`${server.url}/agents/unknown/x`)).status).toBe(400);
  expect((await fetch(`${server.url}/other`)).status).toBe(404);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/agents/counter/x?token=wrong`);
  socket.on("error", () => undefined);
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
  expect(response.statusCode).toBe(403);
});

async function instancesOfRoom(name: string): Promise<unknown> {
  const response = await fetch(`${server.url}/accounts/default/agents/room/instances?search=${name}`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  return ((await response.json()) as { result: unknown }).result;
}

test("hibernating connections keep their state, and messages reach the others", async () => {
  const name = own("lobby");
  const base = `${server.url.replace("http", "ws")}/agents/room-binding/${name}`;
  const [ann, bob] = [new WebSocket(`${base}?user=ann`), new WebSocket(`${base}?user=bob`)];
  onTestFinished(() => {
    for (const socket of [ann, bob]) socket.terminate();
  });
  const heard: unknown[] = [];
  bob.on("message", (data: Buffer) => {
    const text = data.toString();
    if (!text.includes("cf_agent")) heard.push(JSON.parse(text));
  });
  await Promise.all([once(ann, "open"), once(bob, "open")]);
  // The object leaves memory, its sockets stay.
  await expect.poll(() => instancesOfRoom(name)).toMatchObject([{ in_memory: false, connection_count: 2 }]);
  ann.send("hi");
  await expect.poll(() => heard).toContainEqual({ from: "ann", message: "hi" });
  ann.close(1000, "bye");
  await expect.poll(() => heard).toContainEqual({ left: "ann" });
});

test("what was answered survives kill -9, and clients reconnect", async () => {
  const client = await connect("killed");
  for (let i = 1; i <= 5; i += 1) expect(await client.call("add", 1)).toBe(i);
  await client.call("later", 1, "after the kill");
  server = await server.killAndRestart();
  await expect.poll(() => client.state?.log).toEqual(["after the kill"]);
  expect(await client.call("add", 1)).toBe(6);
});

test("kill -9 in the middle of calls: state and rows have what was answered, in their order", async () => {
  const client = await connect("middle");
  const answered: number[] = [];
  const visits: string[] = [];
  const add = async (): Promise<void> => {
    for (;;) answered.push((await client.call("add", 1)) as number);
  };
  const visit = async (): Promise<void> => {
    for (let i = 0; ; i += 1)
      visits.splice(0, visits.length, ...((await client.call("visit", `v${i}`)) as string[]));
  };
  // They end when the server does.
  const callers = Promise.allSettled([add(), add(), visit()]);
  await expect.poll(() => Math.min(answered.length, visits.length), { interval: 1 }).toBeGreaterThan(10);
  server = await server.killAndRestart();
  await callers;
  await client.ready;
  // At most the calls that were on their way are stored beyond those.
  const last = answered.at(-1) ?? 0;
  const count = (await client.call("add", 0)) as number;
  expect(count).toBeGreaterThanOrEqual(last);
  expect(count).toBeLessThanOrEqual(last + 2);
  const stored = (await client.call("visit", "after")) as string[];
  expect(stored.slice(0, visits.length)).toEqual(visits);
  expect(stored.length).toBeLessThanOrEqual(visits.length + 2);
});

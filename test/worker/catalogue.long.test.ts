/** Programs of the published package, each feature with the published client: read-only, hooks, props, work, fibers, nested agents. */
import { once } from "node:events";
import { AgentClient, agentFetch } from "agents/client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("catalogue/src/server.ts", {
    file: { agents: { access: "worker", idleTimeoutMs: 100 } },
  });
});
afterAll(() => server.remove());

/** Agents of a test have names of their own in each try: a second try finds nothing of the first. */
let tries = 0;
beforeEach(() => {
  tries += 1;
});
const own = (name: string) => `${name}-${tries}`;

const clients: AgentClient[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

interface Options {
  readonly query?: Record<string, string>;
  readonly basePath?: string;
  readonly onStateUpdateError?: (error: string) => void;
}

async function connect(agent: string, name: string, options: Options = {}): Promise<AgentClient> {
  const { host } = new URL(server.url);
  const client = new AgentClient({ agent, name, host, protocol: "ws", WebSocket, ...options });
  clients.push(client);
  await client.ready;
  return client;
}
const call = (client: AgentClient, method: string, ...args: unknown[]): Promise<unknown> =>
  client.call(method, args);

test("a read-only connection reads, receives, and cannot write until it is unlocked", async () => {
  const refusals: string[] = [];
  const viewer = await connect("Document", own("shared"), {
    query: { mode: "view" },
    onStateUpdateError: (error) => refusals.push(error),
  });
  const editor = await connect("Document", own("shared"));
  expect(await call(editor, "write", "hello")).toBe("hello");
  await expect.poll(() => viewer.state).toEqual({ text: "hello" });
  expect(await call(viewer, "read")).toBe("hello");
  await expect(call(viewer, "write", "mine")).rejects.toThrow(/readonly/i);
  viewer.setState({ text: "mine" });
  await expect.poll(() => refusals).toEqual(["Connection is readonly"]);
  expect(await call(editor, "read")).toBe("hello");
  expect(await call(viewer, "lock", false)).toBe(false);
  expect(await call(viewer, "write", "mine")).toBe("mine");
});

test("kill -9 while a read-only connection watches: it comes back read-only, with what was written", async () => {
  const viewer = await connect("Document", own("watched"), { query: { mode: "view" } });
  const editor = await connect("Document", own("watched"));
  await call(editor, "write", "before");
  const dripped: unknown[] = [];
  const cut = editor.call("drip", [10_000], { stream: { onChunk: (chunk) => dripped.push(chunk) } }).then(
    () => "ended",
    () => "cut",
  );
  await expect.poll(() => dripped.length).toBeGreaterThan(2);
  server = await server.killAndRestart();
  expect(await cut).toBe("cut");
  await Promise.all([viewer.ready, editor.ready]);
  expect(await call(viewer, "read")).toBe("before");
  await expect(call(viewer, "write", "mine")).rejects.toThrow(/readonly/i);
  await call(editor, "write", "after");
  await expect.poll(() => viewer.state).toEqual({ text: "after" });
  expect(await call(viewer, "who")).toMatchObject({ viewers: 1 });
});

test("a state that the class refuses is reported, and its hook may change the state again", async () => {
  const errors: string[] = [];
  const client = await connect("Document", own("checked"), {
    onStateUpdateError: (error) => errors.push(error),
  });
  client.setState({ text: "x".repeat(30) });
  await expect.poll(() => errors.length).toBe(1);
  expect(await call(client, "read")).toBe("");
  client.setState({ text: "shout" });
  await expect.poll(() => client.state).toEqual({ text: "SHOUT" });
});

test("hooks change the request and refuse it, props reach onStart, and a prefix is routed", async () => {
  const client = await connect("Document", own("hooked"), { query: { user: "ann", mode: "view" } });
  expect(await call(client, "who")).toEqual({ user: "ann", role: "reader", viewers: 1 });
  const url = `${server.url}/agents/document/${own("hooked")}`;
  const answer = await fetch(`${url}?user=bob`);
  expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example");
  expect(await answer.json()).toEqual({ user: "bob", role: "reader" });
  const refused = await fetch(`${url}?user=nobody`);
  expect([refused.status, await refused.text()]).toEqual([401, "who are you"]);
  expect(await (await fetch(`${server.url}/api/document/other`)).json()).toEqual({
    user: "guest",
    role: "reader",
  });
  expect(await (await fetch(`${server.url}/named`)).json()).toEqual({ user: null, role: "by name" });
  const fetched = await agentFetch({
    agent: "Document",
    name: own("hooked"),
    host: new URL(server.url).host,
    protocol: "http",
  });
  expect(await fetched.json()).toEqual({ user: "guest", role: "reader" });
  const socket = new WebSocket(`${url.replace("http", "ws")}?user=nobody`);
  socket.on("error", () => undefined);
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
  expect(response.statusCode).toBe(401);
});

test("a stream whose reader has gone does not disturb the agent", async () => {
  const reader = await connect("Document", own("drips"));
  const other = await connect("Document", own("drips"));
  const first = Promise.withResolvers<void>();
  reader.call("drip", [10], { stream: { onChunk: () => first.resolve() } }).catch(() => undefined);
  await first.promise;
  reader.close();
  await expect.poll(() => other.state).toEqual({ text: "dripped" });
  const chunks: unknown[] = [];
  const end = await other.call("drip", [3], { stream: { onChunk: (chunk) => chunks.push(chunk) } });
  expect([chunks, end]).toEqual([[0, 1, 2], "all"]);
});

test("schedules of every kind, retries, and work that keeps the agent in memory", async () => {
  const client = await connect("Jobs", own("plans"));
  expect(await call(client, "plan")).toEqual({
    types: ["cron", "delayed", "interval"],
    same: true,
    delayed: "delayed",
    every: "interval",
  });
  expect(await call(client, "tryAgain")).toEqual({ tries: 2, result: "then" });
  expect(await call(client, "alive")).toBe("alive");
  await expect.poll(() => call(client, "done")).toEqual(["delayed"]);
});

/** The class itself waits 30 seconds before it repeats work of a process that ended. */
const REPEAT = { interval: 500 };

test("kill -9 during queued work, a schedule and a fiber: each is finished", async () => {
  const [queue, schedule, fiber] = await Promise.all(
    ["queue", "schedule", "fiber"].map((name) => connect("Jobs", own(name))),
  );
  if (queue === undefined || schedule === undefined || fiber === undefined) throw new Error("unreachable");
  await call(schedule, "later", 1, "slow scheduled");
  await expect.poll(() => schedule.state).toEqual({ begun: "slow scheduled" });
  await call(queue, "queueAll", ["a", "slow b", "bad", "c"]);
  const begun = (await call(fiber, "begin", 8)) as { id: string; accepted: boolean };
  expect(begun.accepted).toBe(true);
  expect(await call(fiber, "begin", 8)).toEqual({ id: begun.id, accepted: false });
  await expect.poll(() => call(fiber, "done")).toContain("step 3");
  await expect.poll(() => queue.state).toEqual({ begun: "slow b" });
  expect(await call(queue, "done")).toEqual(["a"]);
  server = await server.killAndRestart();

  // From its last checkpoint: at most the interrupted step runs twice.
  await expect.poll(() => call(fiber, "done"), REPEAT).toContain("counted");
  const done = (await call(fiber, "done")) as string[];
  const steps = done.filter((what) => what.startsWith("step"));
  expect([...new Set(steps)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((step) => `step ${step}`));
  expect(steps.length).toBeLessThanOrEqual(9);
  expect(done).toContain("recovered count");
  await expect.poll(() => call(fiber, "fiber", begun.id)).toBe("completed");

  await expect.poll(() => call(schedule, "done"), REPEAT).toEqual(["slow scheduled"]);
  // What fails is tried as often as the class says.
  await expect
    .poll(() => call(queue, "done"), REPEAT)
    .toEqual(["a", "slow b", "bad tried", "bad tried", "c"]);
});

test("nested agents are called by their parent and by clients, survive a kill, and are deleted", async () => {
  const red = own("red");
  const team = await connect("Team", red);
  expect(await call(team, "assign", "ann", "paint")).toEqual({ tasks: ["paint"], motto: `motto of ${red}` });
  const path = `agents/team/${red}/sub/member/ann`;
  const member = await connect("member", "ann", { basePath: path });
  await expect.poll(() => member.state).toEqual({ tasks: ["paint"] });
  expect(await call(member, "take", "draw")).toMatchObject({ tasks: ["paint", "draw"] });
  server = await server.killAndRestart();
  expect(await call(member, "take", "glue")).toMatchObject({ tasks: ["paint", "draw", "glue"] });
  const refused = await fetch(`${server.url}/agents/team/${red}/sub/member/private`);
  expect([refused.status, await refused.text()]).toEqual([403, "not this one"]);
  member.close();
  expect(await call(team, "dismiss", "ann")).toEqual([]);
  expect(await call(team, "assign", "ann", "again")).toMatchObject({ tasks: ["again"] });
});

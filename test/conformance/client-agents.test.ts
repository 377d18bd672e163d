/**
 * `@signalbox/client` connected to agents of a real service: state, calls, streams, permissions, and a server that is
 * killed and restarted.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type AgentConnection, SignalboxClient } from "@signalbox/client";
import { eventually } from "../../packages/client/test/eventually.ts";
import type { Chatty, Counter } from "../fixtures/test-agents.ts";
import { TEST_AGENTS } from "../support/agents.ts";
import { freePort } from "../support/free-port.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
const connections: { close(): void }[] = [];

beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [TEST_AGENTS] } } });
});

afterEach(() => {
  for (const connection of connections.splice(0)) connection.close();
});

afterAll(() => server.stop());

function counter(name: string, token: string | undefined = ROOT_TOKEN): AgentConnection<Counter> {
  const client = new SignalboxClient({ url: server.url, token: token ?? "" });
  const connection = client.agent<Counter>({ agent: "Counter", name });
  connections.push(connection);
  return connection.open();
}

it("the client reaches the instance of the named account, or of the token's account", async () => {
  await server.api("POST", "/accounts", { id: "b" });
  const token = await server.token(["agents.edit"], { account: "b" });
  const open = (client: SignalboxClient, account?: string) => {
    const connection = client.agent<Counter>({
      agent: "Counter",
      name: "of-accounts",
      ...(account === undefined ? {} : { account }),
    });
    connections.push(connection);
    return connection.open();
  };
  const root = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
  expect(await open(root, "b").stub.increment(5)).toBe(5);
  expect(await open(new SignalboxClient({ url: server.url, token })).stub.increment(1)).toBe(6);
  expect(await open(root).stub.increment(1)).toBe(1);
  expect(() => root.agent({ agent: "Counter", account: "" })).toThrow("account must not be empty");
});

describe("state", () => {
  it("the state is known when the connection is ready and follows changes by methods and other clients", async () => {
    const [mine, theirs] = [counter("shared"), counter("shared")];
    await Promise.all([mine.ready(), theirs.ready()]);
    expect(mine.snapshot).toMatchObject({
      identity: { agent: "counter", name: "shared" },
      state: { count: 0 },
    });
    expect(await mine.stub.increment(3)).toBe(3);
    await eventually(() => expect([mine.state, theirs.state]).toEqual([{ count: 3 }, { count: 3 }]));
    theirs.setState({ count: 10 });
    await eventually(() => expect(mine.state).toEqual({ count: 10 }));
    expect(theirs.state).toEqual({ count: 10 });
  });

  it("a state that the agent refuses is reverted, and the next valid state stays", async () => {
    const connection = counter("refusing");
    await connection.ready();
    const errors: string[] = [];
    connection.on("stateError", (message) => errors.push(message));
    connection.setState({ count: "many" as unknown as number });
    connection.setState({ count: 5 });
    await eventually(() => expect(errors).toEqual(["State update rejected"]));
    await eventually(() => expect(connection.state).toEqual({ count: 5 }));
    expect(await connection.stub.read()).toMatchObject({ count: 5 });
  });

  it("a state set before the connection is open wins over the server's first state", async () => {
    const client = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
    const connection = client.agent<Counter>({ agent: "Counter", name: "early" });
    connections.push(connection);
    connection.setState({ count: 77 });
    await connection.open().ready();
    expect(connection.state).toEqual({ count: 77 });
    expect(await connection.stub.read()).toMatchObject({ count: 77 });
  });
});

describe("calls", () => {
  it("a failed call rejects with the agent's message, and a method that is not callable rejects", async () => {
    const connection = counter("failing");
    await expect(connection.stub.syncFail()).rejects.toMatchObject({
      reason: "call_failed",
      message: "failed at once",
    });
    await expect(connection.call("notCallable", [])).rejects.toThrow("Method notCallable is not callable");
  });

  it("a stream yields its chunks and ends with a value, or fails with an error", async () => {
    const connection = counter("streaming");
    const stream = connection.stream<number, string>("stream", [3]);
    const pieces: number[] = [];
    for await (const piece of stream) pieces.push(piece);
    expect([pieces, await stream.result]).toEqual([[0, 1, 2], "done"]);
    const broken = connection.stream("brokenStream", []);
    expect(await broken.next()).toEqual({ done: false, value: "first" });
    await expect(broken.next()).rejects.toThrow("broke off");
  });

  it("a call can time out while the agent is busy", async () => {
    await expect(counter("busy").call("slow", [1500, "work"], { timeoutMs: 100 })).rejects.toMatchObject({
      reason: "timeout",
    });
  });
});

describe("permissions", () => {
  it("a token with agents.read receives the state and can change nothing", async () => {
    const connection = counter("guarded", await server.token(["agents.read"]));
    await connection.ready();
    const errors: string[] = [];
    connection.on("stateError", (message) => errors.push(message));
    connection.setState({ count: 1 });
    await eventually(() => expect(errors).toHaveLength(1));
    expect(connection.state).toEqual({ count: 0 });
    await expect(connection.stub.increment()).rejects.toMatchObject({ reason: "call_failed" });
  });

  it.each([
    ["an unknown token", () => Promise.resolve("not-a-token"), 4401],
    ["a token without the permission", () => server.token(["tags.read"]), 4403],
  ])("%s closes the connection for good", async (_who, token, code) => {
    const connection = counter("closed", await token());
    await expect(connection.ready()).rejects.toMatchObject({ reason: "final", closeCode: code });
  });

  it("an unknown agent closes the connection for good", async () => {
    const client = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
    const connection = client.agent({ agent: "Nobody", name: "x" }).open();
    await expect(connection.ready()).rejects.toMatchObject({ reason: "final", closeCode: 4404 });
  });
});

describe("application messages", () => {
  it("application messages are sent as text in both directions", async () => {
    const client = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
    const connection = client.agent<Chatty>({ agent: "Chatty", name: "room" });
    connections.push(connection);
    const messages: string[] = [];
    connection.on("message", (text) => messages.push(text));
    connection.send("hello");
    connection.open();
    await eventually(() => expect(messages).toEqual([`welcome ${connection.id}`, `${connection.id}: hello`]));
  });
});

describe("management", () => {
  const agents = () => new SignalboxClient({ url: server.url, token: ROOT_TOKEN }).account().agents;

  it("agents and instances are listed, and an instance is read with its state, connections and rows", async () => {
    const connection = counter("operated");
    await connection.stub.increment(2);
    const classes = await agents().list().all();
    expect(classes.find(({ name }) => name === "counter")?.callable.map(({ name }) => name)).toContain(
      "increment",
    );
    expect((await agents().instances("Counter", { search: "operat" }).all()).map(({ name }) => name)).toEqual(
      ["operated"],
    );
    const instance = agents().instance("Counter", "operated");
    expect(await instance.get()).toMatchObject({ state: { count: 2 }, queue_count: 0, connection_count: 1 });
    expect((await instance.connections().all()).map(({ id }) => id)).toEqual([connection.id]);
    expect(await instance.sql("SELECT note FROM hits")).toEqual({ rows: [{ note: "+2" }], truncated: false });
    expect((await instance.events().all()).map(({ type }) => type)).toContain("connect");
    expect(await instance.queue().all()).toEqual([]);
    expect(await instance.schedules().all()).toEqual([]);
  });

  it("instances are read over several pages; dead letters are read, replayed and discarded", async () => {
    for (const name of ["page-a", "page-b", "page-c"]) await counter(name).ready();
    const list = agents().instances("counter", { search: "page-", limit: 2 });
    const sizes: number[] = [];
    for await (const page of list.pages()) sizes.push(page.items.length);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(3);
    const instance = agents().instance("counter", "page-a");
    expect(await instance.deadLetters().all()).toEqual([]);
    expect(await instance.replayDeadLetters()).toBe(0);
    await expect(instance.discardDeadLetter("none")).rejects.toMatchObject({ status: 404 });
  });

  it("call a method over HTTP and follow the events of the instance", async () => {
    const client = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
    const instance = client.account().agents.instance("Counter", "followed");
    expect(await client.callAgent({ agent: "Counter", name: "followed" }, "increment", [2])).toBe(2);
    const events = instance.follow();
    // The stream begins at an unknown time after `next`, so calls continue until it yields.
    const first = events.next();
    let isDone = false;
    void first.then(() => (isDone = true));
    while (!isDone) await client.callAgent({ agent: "Counter", name: "followed" }, "increment", [1]);
    expect((await first).value).toMatchObject({ agent: "counter", name: "followed" });
    await events.return();
    await expect(client.callAgent({ agent: "Counter" }, "nothing")).rejects.toMatchObject({ code: 3004 });
  });

  it("destroying an instance closes its connections for good", async () => {
    const connection = counter("doomed");
    await connection.ready();
    const instance = agents().instance("counter", "doomed");
    await instance.destroy();
    await eventually(() => expect(connection.status).toBe("closed"));
    await expect(instance.get()).rejects.toMatchObject({ status: 404 });
  });
});

describe("a server that is killed", () => {
  it("the client reconnects to the same address, receives the acknowledged state and repeats no call", async () => {
    const folder = await mkdtemp(join(tmpdir(), "signalbox-client-"));
    // Not a port that the system gives to connections: one of them, or the client itself, could take it meanwhile.
    const port = String(await freePort());
    const start = (): Promise<ServerProcess> =>
      startServerProcess(["--data-dir", folder, "--agents", TEST_AGENTS, "--port", port], {
        env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
      });
    let child = await start();
    try {
      const client = new SignalboxClient({ url: child.url, token: ROOT_TOKEN });
      const connection = client.agent<Counter>({
        agent: "Counter",
        name: "survivor",
        backoff: { baseDelayMs: 20, maxDelayMs: 200 },
      });
      connections.push(connection);
      expect(await connection.open().stub.increment(4)).toBe(4);
      const lost = connection.stub.never().catch((error: unknown) => error);
      await child.end("SIGKILL");
      expect(await lost).toMatchObject({ reason: "closed" });
      const waiting = connection.stub.increment(1);
      // If the server does not start, that is the error.
      waiting.catch(() => undefined);
      child = await start();
      expect(await waiting).toBe(5);
      expect(await connection.stub.notes()).toEqual(["+4", "+1"]);
    } finally {
      await child.end("SIGTERM");
      await rm(folder, { recursive: true, force: true });
    }
  });
});

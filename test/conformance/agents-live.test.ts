/** Frames of live connections: interface section 6.3, decisions section 5 (wire protocol). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    file: { agents: { modules: [TEST_AGENTS], maxMessageBytes: 4096 } },
  });
});
afterAll(() => server.stop());

const connect = (path: string, options: { token?: string | null } = {}, at = server) =>
  new RawClient(`${at.url}/agents/${path}`, options).opened();

const isState7 = (frame: { state?: { count: number } }) => frame.state?.count === 7;

describe("a new connection", () => {
  it("a new connection receives the identity, then the state, once", async () => {
    const client = await connect("counter/live1?_pk=me");
    expect(await client.next()).toEqual({
      type: "cf_agent_identity",
      name: "live1",
      agent: "counter",
      stateFollows: true,
    });
    expect(await client.next()).toEqual({ type: "cf_agent_state", state: { count: 0 } });
    expect(await client.call("read")).toMatchObject({ success: true, done: true });
    expect(client.received).toEqual([]);
    client.close();
  });

  it("an agent without state sends the identity only", async () => {
    const client = await connect("chatty/room?_pk=solo");
    expect(await client.next()).toEqual({ type: "cf_agent_identity", name: "room", agent: "chatty" });
    expect(await client.next()).toBe("welcome solo");
    client.close();
  });

  it.each([
    ["without a token", "counter/x", null, 4401],
    ["with an unknown token", "counter/x", "sbx_nonsense", 4401],
    ["to an unknown agent", "nobody/x", ROOT_TOKEN, 4404],
    ["to a name that is too long", `counter/${"n".repeat(257)}`, ROOT_TOKEN, 4400],
  ])("a connection %s is closed with a final code", async (_title, path, token, code) => {
    const client = await connect(path, { token });
    expect(await client.closed()).toBe(code);
  });
});

describe("state", () => {
  it("a state change is sent to every connection of the instance and to no other instance", async () => {
    const [one, two, other] = await Promise.all([
      connect("counter/s1?_pk=1"),
      connect("counter/s1?_pk=2"),
      connect("counter/s2?_pk=3"),
    ]);
    await one.call("increment", 7);
    expect(await one.next(isState7)).toBeTruthy();
    expect(await two.next(isState7)).toBeTruthy();
    await other.call("read");
    expect(other.received.some(isState7)).toBe(false);
    for (const client of [one, two, other]) client.close();
  });

  it("a state sent by a client is stored and sent to the other connections only", async () => {
    const [one, two] = await Promise.all([connect("counter/s3?_pk=1"), connect("counter/s3?_pk=2")]);
    await one.greeted();
    await two.greeted();
    one.send({ type: "cf_agent_state", state: { count: 41 } });
    expect(await two.next((frame) => frame.type === "cf_agent_state")).toMatchObject({
      state: { count: 41 },
    });
    expect((await one.call("read")).result.count).toBe(41);
    expect(one.received).toEqual([]);
    for (const client of [one, two]) client.close();
  });

  it("a refused state is followed by the current state", async () => {
    const client = await connect("counter/s4");
    await client.greeted();
    client.send({ type: "cf_agent_state", state: { count: "many" } });
    expect(await client.next()).toEqual({ type: "cf_agent_state_error", error: "State update rejected" });
    expect(await client.next()).toEqual({ type: "cf_agent_state", state: { count: 0 } });
    client.close();
  });

  it("a state change of a turn that then fails is not sent", async () => {
    const client = await connect("counter/s5");
    await client.greeted();
    expect((await client.call("incrementThenFail")).error).toBe("failed on purpose");
    await client.call("read");
    expect(client.received).toEqual([]);
    client.close();
  });
});

describe("a read-only connection", () => {
  it("a read-only connection receives state and calls what does not write, but cannot set the state, write or send messages", async () => {
    await server.api("POST", "/agents/counter/ro/rpc/read", []);
    const client = await connect("counter/ro", { token: await server.token(["agents.read"]) });
    await client.greeted();
    client.send({ type: "cf_agent_state", state: { count: 5 } });
    expect(await client.next()).toEqual({ type: "cf_agent_state_error", error: "Connection is readonly" });
    expect(await client.next()).toEqual({ type: "cf_agent_state", state: { count: 0 } });
    expect(await client.call("increment")).toMatchObject({ success: false, error: "Connection is readonly" });
    expect(await client.call("read")).toMatchObject({ success: true, result: { count: 0, hits: 0 } });
    client.send("hello");
    expect(await client.next()).toMatchObject({ type: "cf_agent_state_error" });
    const writer = await connect("counter/ro");
    await writer.call("increment");
    expect(await client.next((frame) => frame.state?.count === 1)).toBeTruthy();
    for (const each of [client, writer]) each.close();
  });
});

describe("calls", () => {
  it("a streaming call sends its results frame by frame", async () => {
    const client = await connect("counter/c1");
    client.send({ type: "rpc", id: "s", method: "stream", args: [3] });
    const frames = [];
    for (let i = 0; i < 4; i++) frames.push(await client.next((frame) => frame.id === "s"));
    expect(frames).toEqual([
      { type: "rpc", id: "s", success: true, result: 0, done: false },
      { type: "rpc", id: "s", success: true, result: 1, done: false },
      { type: "rpc", id: "s", success: true, result: 2, done: false },
      { type: "rpc", id: "s", success: true, result: "done", done: true },
    ]);
    client.close();
  });

  it("an error in a streaming call ends the stream with the error", async () => {
    const client = await connect("counter/c1");
    client.send({ type: "rpc", id: "b", method: "brokenStream", args: [] });
    expect(await client.next((frame) => frame.id === "b")).toMatchObject({ result: "first" });
    expect(await client.next((frame) => frame.id === "b")).toEqual({
      type: "rpc",
      id: "b",
      success: false,
      error: "broke off",
    });
    client.close();
  });

  it("calls to methods that are not callable are refused with the texts that clients expect", async () => {
    const client = await connect("counter/c1");
    expect((await client.call("nope")).error).toBe("Method nope does not exist");
    expect((await client.call("notCallable")).error).toBe("Method notCallable is not callable");
    client.close();
  });
});

describe("messages", () => {
  it("messages that are not protocol frames reach onMessage, text and binary", async () => {
    const [one, two] = await Promise.all([connect("chatty/m?_pk=1"), connect("chatty/m?_pk=2")]);
    await two.next((frame) => frame === "welcome 2");
    one.send("hi");
    expect(await two.next((frame) => frame === "1: hi")).toBeTruthy();
    expect(await one.next((frame) => frame === "1: hi")).toBeTruthy();
    one.send("others");
    expect(await two.next((frame) => frame === "1: others")).toBeTruthy();
    one.socket.send(Buffer.from([1, 2, 3]));
    expect(await one.next((frame) => Buffer.isBuffer(frame))).toEqual(Buffer.from([1, 2, 3]));
    expect(one.received).not.toContain("1: others");
    one.close();
    expect(await two.next((frame) => String(frame).startsWith("left 1 "))).toBe(
      'left 1 1005 {"joined":true}',
    );
    two.close();
  });

  it("a message over the limit closes the connection with 1009", async () => {
    const client = await connect("chatty/m");
    client.send("x".repeat(5000));
    expect(await client.closed()).toBe(1009);
  });
});

describe("connections", () => {
  it("connections are found by their tags", async () => {
    const [one, two] = await Promise.all([
      connect("chatty/t?_pk=1&room=red"),
      connect("chatty/t?_pk=2&room=blue"),
    ]);
    await one.next((frame) => frame === "welcome 1");
    await two.next((frame) => frame === "welcome 2");
    expect((await one.call("members", "red")).result).toEqual(["1"]);
    expect((await one.call("members", "2")).result).toEqual(["2"]);
    for (const client of [one, two]) client.close();
  });

  it("a connection with an id in use replaces the older connection", async () => {
    const older = await connect("chatty/d?_pk=same");
    await older.next((frame) => frame === "welcome same");
    const newer = await connect("chatty/d?_pk=same");
    expect(await older.closed()).toBe(4409);
    await newer.next((frame) => frame === "welcome same");
    newer.send("still here");
    expect(await newer.next((frame) => frame === "same: still here")).toBeTruthy();
    newer.close();
  });

  it("connections that do not answer pings are closed, and the others stay open", async () => {
    // A server of its own: with such an interval a pause of the machine would close the connections of other tests.
    const pinging = await startTestServer({
      file: { agents: { modules: [TEST_AGENTS], pingIntervalMs: 1000 } },
    });
    const [dead, alive] = await Promise.all([
      connect("chatty/p?_pk=dead", {}, pinging),
      connect("chatty/p?_pk=alive", {}, pinging),
    ]);
    await alive.next((frame) => frame === "welcome alive");
    await dead.next((frame) => frame === "welcome dead");
    dead.socket.pause();
    expect(await alive.next((frame) => String(frame).startsWith("left dead 1006"))).toBeTruthy();
    alive.send("ok");
    expect(await alive.next((frame) => frame === "alive: ok")).toBeTruthy();
    alive.close();
    dead.socket.terminate();
    await pinging.stop();
  });
});

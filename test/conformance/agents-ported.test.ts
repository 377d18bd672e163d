/** Agents written for the public `agents` package: names, members and hooks that they use mean the same here. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentClient } from "agents/client";
import { WebSocket } from "ws";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const MODULE = join(import.meta.dirname, "../fixtures/ported-agents.ts");

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [MODULE], idleTimeoutMs: 50 } } });
});
afterAll(() => server.stop());

const call = async (path: string, method: string, ...args: unknown[]) =>
  (await server.api("POST", `/agents/${path}/rpc/${method}`, args)).body;
const result = async (path: string, method: string, ...args: unknown[]) =>
  (await call(path, method, ...args)).result;
const connect = (path: string, options = {}) =>
  new RawClient(`${server.url}/agents/${path}`, options).opened();

describe("a connection that the agent made read-only", () => {
  const READONLY = { success: false, error: "Connection is readonly" };

  it("calls methods that write nothing, also those that make it writable", async () => {
    const viewer = await connect("document/a?mode=view");
    await viewer.greeted();
    expect((await viewer.call("getPermissions")).result).toEqual({
      canEdit: false,
      isThis: true,
      gets: true,
    });
    expect(await viewer.call("write", "x")).toMatchObject(READONLY);
    await viewer.call("setMyReadonly", false);
    expect(await viewer.call("write", "y")).toMatchObject({ success: true, result: "y" });
    await viewer.call("setMyReadonly", true);
    expect(await viewer.call("write", "z")).toMatchObject(READONLY);
    viewer.close();
  });

  it("writes nothing by any method: state, rows after a wait, queue, another agent, destroy", async () => {
    const viewer = await connect("document/b?mode=view");
    await viewer.greeted();
    for (const [method, ...args] of [
      ["write", "x"],
      ["writeLater", "x"],
      ["enqueue"],
      ["askAnother", "b2", "x"],
      ["end"],
    ])
      expect([method, await viewer.call(method as string, ...args)]).toMatchObject([method, READONLY]);
    viewer.send({ type: "cf_agent_state", state: { text: "x" } });
    expect(await viewer.next()).toEqual({ type: "cf_agent_state_error", error: "Connection is readonly" });
    expect(await viewer.next()).toEqual({ type: "cf_agent_state", state: { text: "" } });
    expect((await viewer.call("lines")).result).toEqual([]);
    expect(await result("document/b2", "lines")).toEqual([]);
    viewer.close();
  });

  it("sends messages, as with the original", async () => {
    const viewer = await connect("document/c?mode=view");
    await viewer.greeted();
    viewer.send("hello");
    expect(await viewer.next()).toEqual({ got: "hello" });
    viewer.close();
  });

  it("gets the same answers through the original's client", async () => {
    const client = new AgentClient({
      agent: "document",
      name: "d",
      host: new URL(server.url).host,
      query: { token: ROOT_TOKEN, mode: "view" },
      WebSocket,
    });
    expect(await client.call("getPermissions")).toMatchObject({ canEdit: false });
    await expect(client.call("write", ["x"])).rejects.toThrow("Connection is readonly");
    client.close();
  });
});

describe("names", () => {
  it("agents are named by their exports, also one class under several names", async () => {
    expect(await result("sequential/x", "greet")).toBe("one after the other from x");
    expect(await result("parallel/x", "greet")).toBe("all at once from x");
    expect(await result("routing/x", "greet")).toBe("all at once from x");
    expect((await call("anthropic-agent/x", "greet")).errors[0].code).toBe(3001);
  });

  it("a default export is named by its class; a class with both hooks for the state is refused", async () => {
    const folder = await mkdtemp(join(tmpdir(), "signalbox-names-"));
    const load = async (source: string) => {
      const path = join(folder, `${Math.random()}.ts`);
      await writeFile(path, `import { Agent } from "signalbox";\n${source}`);
      const own = await startTestServer({ file: { agents: { modules: [path] } } });
      const { body } = await own.api("GET", "/accounts/default/agents");
      await own.stop();
      return (body.result as { name: string }[]).map(({ name }) => name);
    };
    expect(await load("export default class Only extends Agent {}")).toContain("only");
    expect(await load("export class One extends Agent {} export { One as default };")).toContain("one");
    await expect(
      load("export class Both extends Agent { onStateChanged() {} onStateUpdate() {} }"),
    ).rejects.toThrow("onStateChanged and its former name onStateUpdate");
    await expect(
      load("export class Never extends Agent { static options = { retry: { maxAttempts: 0 } } }"),
    ).rejects.toThrow("retry.maxAttempts");
    await rm(folder, { recursive: true, force: true });
  });
});

describe("agents in env", () => {
  it("getAgentByName takes an agent of env, and ids work", async () => {
    expect(await result("lobby/main", "enter", "r1", "ann")).toEqual([1, 2]);
  });

  it("fetch of a stub is answered by onRequest", async () => {
    expect(await result("lobby/main", "ask", "r2", "hello")).toEqual({
      room: "r2",
      path: "/some/path",
      body: "hello",
      seen: true,
    });
  });

  it("code outside of turns can call an agent of env", async () => {
    expect(await result("lobby/main", "outside", "r3")).toBe(1);
  });
});

describe("hooks and members", () => {
  it("onStateUpdate is called as onStateChanged is", async () => {
    await result("document/e", "write", "new");
    expect(await result("document/e", "lines")).toEqual(["updated to new by server"]);
  });

  it("onError receives the connection of the failed call, or the error alone", async () => {
    const client = await connect("document/f?_pk=me");
    await client.call("fail");
    await call("document/f", "fail");
    const lines = await waitUntil(
      () => result("document/f", "lines"),
      (all) => all.length === 2,
    );
    expect(lines).toEqual(["me: failed", "nobody: failed"]);
    client.close();
  });

  it("binary messages are ArrayBuffers, and can be sent as such", async () => {
    const client = await connect("document/g");
    await client.greeted();
    client.socket.send(Buffer.from([1, 2, 3]));
    expect(await client.next()).toEqual({ got: "3 bytes" });
    expect([...(await client.next())]).toEqual([1, 2, 3]);
    client.close();
  });

  it("SQL takes ArrayBuffers, views, undefined and large integers", async () => {
    expect(await result("document/h", "values")).toEqual({
      b: [1, 2, 3],
      u: null,
      n: "9007199254740993",
      v: [2, 3],
    });
  });

  it("ctx has the id and SQL with a text of run time, and a viewer cannot write by it", async () => {
    expect(await result("document/ctx", "dynamic", "own")).toEqual({
      columns: ["id", "data"],
      ids: [
        [2, 1],
        [3, null],
      ],
      n: 3,
      id: "ctx",
      raw: [[1, "a"]],
    });
    const viewer = await connect("document/ctx?mode=view");
    expect(await viewer.call("dynamic", "other")).toMatchObject({ error: "Connection is readonly" });
    viewer.close();
    expect((await call("document/ctx", "dynamic", "_signalbox_own")).errors[0].message).toContain(
      "_signalbox",
    );
  });

  it("callable methods and schedules can be read without a promise; cron takes seconds", async () => {
    expect(await result("document/i", "methods")).toContainEqual(["getPermissions", "for viewers too"]);
    expect(await result("document/i", "scheduled")).toEqual([["*/5 * * * * *"], "lines"]);
  });

  it("a connection without protocol messages gets neither identity nor state, but answers", async () => {
    const device = await connect("document/j?mode=device");
    expect((await device.call("getPermissions")).result).toMatchObject({ gets: false });
    await result("document/j", "write", "pushed");
    expect((await device.call("lines")).result).toEqual(["updated to pushed by server"]);
    expect(device.received).toEqual([]);
    device.close();
  });

  it("static options.retry limits the attempts of queued work, and retry() repeats as it is told", async () => {
    await result("retrying/a", "queueBroken");
    const letters = await waitUntil(
      () => result("retrying/a", "letters"),
      (all) => all.length > 0,
    );
    expect(letters).toEqual([["broken", 2]]);
    expect(await result("retrying/a", "retryUntil", 2)).toEqual(["done", [1, 2]]);
    expect(await result("retrying/a", "retryUntil", 3)).toEqual(["attempt 2", [1, 2]]);
    expect(await result("retrying/a", "retryUntil", 3, 3)).toEqual(["done", [1, 2, 3]]);
    expect(await result("retrying/a", "retryUnless", 2)).toEqual([2, 3]);
  });

  it("a connection can be used as a WebSocket: its listeners keep the instance in memory until it closes", async () => {
    const client = await connect("transport/a");
    await client.next((frame) => frame.type === "cf_agent_identity");
    client.send("one");
    expect(await client.next()).toEqual({ heard: ["one"] });
    const before = server.logs.length;
    // Far beyond the time after which an idle instance leaves.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(server.logs.length).toBe(before);
    client.socket.send(Buffer.from([7]));
    expect(await client.next()).toEqual({ heard: ["one", "1 bytes"] });
    expect((await client.call("attachment")).result).toEqual({ since: 1 });
    const second = await connect("transport/a");
    client.close();
    const heard = await waitUntil(
      () => second.call("read"),
      (frame) => frame.result.includes("closed"),
    );
    expect(heard.result).toEqual(["one", "1 bytes", "closed"]);
    second.close();
  });
});

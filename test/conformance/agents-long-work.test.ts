/** Work that takes longer than others want to wait: streams, concurrent calls, work after a turn, objects that are left over. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const MODULE = join(import.meta.dirname, "../fixtures/long-work-agents.ts");

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [MODULE], idleTimeoutMs: 50 } } });
});
afterAll(() => server.stop());

const result = async (name: string, method: string, ...args: unknown[]) =>
  (await server.api("POST", `/agents/worker/${name}/rpc/${method}`, args)).body.result;
const connect = (name: string) => new RawClient(`${server.url}/agents/worker/${name}`).opened();
const stored = async (name: string) =>
  (await server.api("GET", `/accounts/default/agents/worker/instances/${name}`)).body.result;

describe("while a call runs", () => {
  it("a new connection is greeted and reaches concurrent methods, which can stop the call", async () => {
    const first = await connect("a?_pk=first");
    await first.greeted();
    first.send({ type: "rpc", id: "s", method: "run", args: [] });
    await first.next((frame) => frame.id === "s");
    const second = await connect("a?_pk=second");
    await second.greeted();
    expect(await second.next()).toEqual({ hello: "second" });
    expect((await second.call("stop")).result).toBe("stopping");
    expect(await first.next((frame) => frame.id === "s" && frame.done === true)).toMatchObject({
      result: "bye",
    });
    expect((await second.call("recall")).result).toEqual(["stopped, send says false"]);
    for (const client of [first, second]) client.close();
  });

  it("onClose of another connection runs", async () => {
    const [busy, other] = [await connect("b?_pk=busy"), await connect("b?_pk=other")];
    busy.send({ type: "rpc", id: "s", method: "run", args: [] });
    await busy.next((frame) => frame.id === "s");
    other.close();
    const last = await waitUntil(
      () => result("b", "recall"),
      (lines) => lines.length > 0,
    );
    expect(last).toEqual(["closed other"]);
    busy.close();
  });

  it("a connection that closes with waiting messages keeps its order: they run, then onClose", async () => {
    const [busy, other] = [await connect("o?_pk=busy"), await connect("o?_pk=other")];
    await other.greeted();
    busy.send({ type: "rpc", id: "s", method: "run", args: [] });
    await busy.next((frame) => frame.id === "s");
    other.send("one");
    other.send("two");
    other.close();
    await other.closed();
    expect((await busy.call("recall")).result).toEqual([]);
    await busy.call("stop");
    const last = await waitUntil(
      () => result("o", "recall"),
      (lines: string[]) => lines.includes("closed other"),
    );
    expect(last).toEqual(["stopped, send says false", "other says one", "other says two", "closed other"]);
    busy.close();
  });

  it("its socket closes: the stream ends, its signal is aborted, and the instance is free", async () => {
    const client = await connect("c");
    client.send({ type: "rpc", id: "s", method: "run", args: [] });
    await client.next((frame) => frame.id === "s");
    client.socket.terminate();
    const last = await waitUntil(
      () => result("c", "recall"),
      (lines: string[]) => lines.includes("aborted"),
    );
    expect(last).toContain("aborted");
    expect(await result("c", "wait", 1)).toBe("waited");
  });

  it("an agent can call its own concurrent method", async () => {
    expect(await result("d", "waitForSelf")).toEqual([]);
  });

  it("other calls wait, as before", async () => {
    const client = await connect("e");
    client.send({ type: "rpc", id: "s", method: "run", args: [] });
    await client.next((frame) => frame.id === "s");
    let hasWaited = false;
    const other = result("e", "wait", 0).then(() => (hasWaited = true));
    // Later requests to a concurrent method are answered.
    for (let i = 0; i < 10; i++) await result("e", "recall");
    expect(hasWaited).toBe(false);
    await client.call("stop");
    await other;
    client.close();
  });
});

describe("a stream whose method fails", () => {
  it("ends with one error frame: neither its end nor a later chunk leaves", async () => {
    const client = await connect("f");
    client.send({ type: "rpc", id: "s", method: "failLate", args: [] });
    expect(await client.next((frame) => frame.id === "s")).toMatchObject({ result: "first" });
    expect(await client.next((frame) => frame.id === "s")).toEqual({
      type: "rpc",
      id: "s",
      success: false,
      error: "failed late",
    });
    const lines = await waitUntil(
      () => result("f", "recall"),
      (all) => all.length > 0,
    );
    expect(new Set(lines)).toEqual(new Set(["late false"]));
    expect(client.received.filter((frame) => frame.id === "s")).toEqual([]);
    client.close();
  });
});

describe("the time limit", () => {
  it("applies to calls only if it is set; the error names it", async () => {
    const limited = await startTestServer({ file: { agents: { modules: [MODULE], turnTimeoutMs: 30 } } });
    const { status, body } = await limited.api("POST", "/agents/worker/x/rpc/wait", [5000]);
    expect([status, body.errors[0].message]).toEqual([504, "The turn took longer than 30 ms"]);
    await limited.stop();
    expect(await result("g", "wait", 100)).toBe("waited");
  });
});

describe("work after its turn", () => {
  it.each(["held", "while", "until"])("keeps the instance in memory to its end (%s)", async (kind) => {
    // 15 steps of 20 ms, with an idle time of 50 ms.
    await result(`w-${kind}`, "background", 15, kind);
    const instance = await waitUntil(
      () => stored(`w-${kind}`),
      ({ state }) => state?.step === 15,
    );
    expect(instance.state).toEqual({ step: 15 });
  });

  it("without a hold ends with an error when the instance has left memory, and writes nothing more", async () => {
    await result("w-left", "background", 1000, "left");
    const names = await waitUntil(
      () => result("other", "left"),
      (all) => all.length > 0,
    );
    expect(names).toEqual(["InstanceGoneError"]);
    const { state } = await stored("w-left");
    expect(await stored("w-left")).toMatchObject({ state });
  });

  it("a response that is being sent keeps the instance in memory", async () => {
    const response = await fetch(`${server.url}/agents/worker/stream`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
    expect((await response.text()).trim().split("\n").length).toBe(15);
    expect((await stored("stream")).state).toEqual({ step: 15 });
  });
});

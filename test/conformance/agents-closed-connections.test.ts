/**
 * Closed connections: `onClose` runs if the agent class has one, also for idle instances; otherwise no instance is
 * loaded.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { readMetric } from "../support/read-metric.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

/** The gate of the fixture agent. */
const GATE = Symbol.for("signalbox.test.gate");
const MODULES = [join(import.meta.dirname, "../fixtures/closing-agents.ts")];

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    file: { agents: { modules: MODULES, maxActiveInstances: 2, idleTimeoutMs: 50 } },
  });
});
afterAll(() => server.stop());

const connect = async (path: string) => {
  const client = await new RawClient(`${server.url}/agents/${path}`).opened();
  await client.next((frame) => frame.type === "cf_agent_identity");
  return client;
};

const call = async (agent: string, name: string, method: string) =>
  (await server.api("POST", `/agents/${agent}/${name}/rpc/${method}`, [])).body.result as unknown;

const openSockets = () => readMetric(server, "signalbox_agent_sockets");
const inMemory = () => readMetric(server, "signalbox_agent_instances");
const starts = () => readMetric(server, "signalbox_agent_starts_total");
const lostCloses = () => readMetric(server, "signalbox_agent_lost_closes_total");

describe("connections that close at the same time", () => {
  it("closing connections opens no database if the agent has no onClose", async () => {
    const clients: RawClient[] = [];
    for (let name = 0; name < 20; name += 1) {
      const crowd = Array.from({ length: 50 }, (_, i) => connect(`indifferent/crowd-${name}?_pk=${i}`));
      clients.push(...(await Promise.all(crowd)));
    }
    await expect.poll(inMemory).toBe(0);
    const startsBefore = await starts();
    for (const { socket } of clients) socket.terminate();
    await expect.poll(openSockets).toBe(0);
    expect(await starts()).toBe(startsBefore);
    expect(await lostCloses()).toBe(0);
  });

  it("onClose runs for every connection, even if few instances fit in memory", async () => {
    const names = Array.from({ length: 12 }, (_, i) => `f-${i}`);
    const clients: RawClient[] = [];
    for (const name of names) clients.push(await connect(`farewell/${name}?_pk=member`));
    // Both places in memory are occupied until the sockets are closed; the other instances are opened afterwards.
    const gate = Promise.withResolvers<void>();
    (globalThis as unknown as Record<symbol, Promise<void>>)[GATE] = gate.promise;
    const busy = [call("farewell", "busy-1", "occupy"), call("farewell", "busy-2", "occupy")];
    await expect.poll(inMemory).toBe(2);
    for (const { socket } of clients) socket.terminate();
    await expect.poll(openSockets).toBe(0);
    gate.resolve();
    await Promise.all(busy);
    for (const name of names)
      await expect.poll(() => call("farewell", name, "farewells")).toEqual(["member"]);
    expect(await lostCloses()).toBe(0);
  });
});

describe("an agent that closes a connection", () => {
  it("an agent may close a connection with standard and application codes", async () => {
    const client = await connect("farewell/codes");
    client.send("4123");
    expect(await client.closed()).toBe(4123);
    expect(client.closeReason).toBe("as you wish");
  });

  it.each([0, 999, 1005, 1006, 2000, 5000, Number.NaN])(
    "closing a connection with %s throws in the agent's code, and the server continues",
    async (code) => {
      const client = await connect(`farewell/wrong-codes`);
      client.send(String(code));
      await expect
        .poll(() =>
          server.logs.some(({ err }) =>
            (err as Error | undefined)?.message.startsWith(`${code} is not a valid close code`),
          ),
        )
        .toBe(true);
      expect(await call("farewell", "wrong-codes", "farewells")).toBeTruthy();
      client.close();
    },
  );
});

describe("server shutdown", () => {
  it("the log reports how many onClose calls did not run", async () => {
    const own = await startTestServer({ file: { agents: { modules: MODULES, idleTimeoutMs: 50 } } });
    const client = await new RawClient(`${own.url}/agents/farewell/x`).opened();
    await client.next((frame) => frame.type === "cf_agent_identity");
    const isInMemory = async () =>
      (await own.api("GET", "/accounts/default/agents/farewell/instances/x")).body.result
        .in_memory as boolean;
    await expect.poll(isInMemory).toBe(false);
    await own.stop();
    expect(await client.closed()).toBe(1012);
    expect(own.logs).toContainEqual(
      expect.objectContaining({ msg: "onClose did not run for closed connections" }),
    );
  });
});

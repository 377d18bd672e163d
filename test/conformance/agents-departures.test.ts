/** Connections that close: `onClose` runs where there is one, also for instances that sleep, and nothing is woken where there is none. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const MODULES = [join(import.meta.dirname, "../fixtures/leaving-agents.ts")];

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

/** The value of a metric, over all labels that fit. */
async function metric(pattern: RegExp): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return text
    .split("\n")
    .filter((line) => pattern.test(line))
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
const openSockets = () => metric(/^signalbox_agent_sockets /);
const inMemory = () => metric(/^signalbox_agent_instances /);

describe("connections that close all at once", () => {
  it("open no database when their agent has no onClose", async () => {
    const clients: RawClient[] = [];
    for (let name = 0; name < 20; name += 1) {
      const crowd = Array.from({ length: 50 }, (_, i) => connect(`indifferent/crowd-${name}?_pk=${i}`));
      clients.push(...(await Promise.all(crowd)));
    }
    await expect.poll(inMemory).toBe(0);
    const starts = await metric(/^signalbox_agent_starts_total/);
    for (const { socket } of clients) socket.terminate();
    await expect.poll(openSockets).toBe(0);
    expect(await metric(/^signalbox_agent_starts_total/)).toBe(starts);
    expect(await metric(/^signalbox_agent_lost_closes_total /)).toBe(0);
  });

  it("all run onClose when it has one, however few instances fit in memory", async () => {
    const names = Array.from({ length: 12 }, (_, i) => `f-${i}`);
    const clients: RawClient[] = [];
    for (const name of names) clients.push(await connect(`farewell/${name}?_pk=member`));
    // The two places are taken for a while: what cannot be opened now is opened later.
    const busy = [call("farewell", "busy-1", "occupy"), call("farewell", "busy-2", "occupy")];
    await expect.poll(inMemory).toBe(2);
    for (const { socket } of clients) socket.terminate();
    await Promise.all(busy);
    await expect.poll(openSockets).toBe(0);
    for (const name of names)
      await expect.poll(() => call("farewell", name, "farewells")).toEqual(["member"]);
    expect(await metric(/^signalbox_agent_lost_closes_total /)).toBe(0);
  });
});

describe("an agent that closes a connection", () => {
  it("may use the codes of the standard and its own", async () => {
    const client = await connect("farewell/codes");
    client.send("4123");
    expect(await client.closed()).toBe(4123);
    expect(client.closeReason).toBe("as you wish");
  });

  it.each([0, 999, 1005, 1006, 2000, 5000, Number.NaN])(
    "gets an error in its own code for %s, and the server goes on",
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

describe("a server that stops", () => {
  it("says how many onClose it could not run", async () => {
    const own = await startTestServer({ file: { agents: { modules: MODULES, idleTimeoutMs: 50 } } });
    const client = await new RawClient(`${own.url}/agents/farewell/x`).opened();
    await client.next((frame) => frame.type === "cf_agent_identity");
    const isAsleep = async () =>
      (await own.api("GET", "/accounts/default/agents/farewell/instances/x")).body.result
        .in_memory as boolean;
    await expect.poll(isAsleep).toBe(false);
    await own.stop();
    expect(await client.closed()).toBe(1012);
    expect(own.logs).toContainEqual(
      expect.objectContaining({ msg: "onClose did not run for closed connections" }),
    );
  });
});

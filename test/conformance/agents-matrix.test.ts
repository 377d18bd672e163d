/** Every operation on an instance and on a connection, in every state of both. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { JournalStore } from "../../packages/signalbox/src/engines/instance-store/journal/journal-store.ts";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const WORK_AGENTS = join(import.meta.dirname, "../fixtures/work-agents.ts");
const BASE = "/accounts/default/agents/counter/instances";

let server: TestServer;
let serial = 0;
beforeAll(async () => {
  server = await startTestServer({
    file: { agents: { modules: [TEST_AGENTS, WORK_AGENTS], idleTimeoutMs: 50, turnTimeoutMs: 30_000 } },
  });
});
afterAll(() => server.stop());

const call = (name: string, method: string, ...args: unknown[]) =>
  server.api("POST", `/agents/counter/${name}/rpc/${method}`, args);

const becomesIdle = (name: string) =>
  waitUntil(
    () => server.api("GET", `${BASE}?search=${name}`),
    ({ body }) => body.result[0]?.in_memory === false,
  );

interface Prepared {
  /** Calls in progress. */
  readonly running?: Promise<unknown>;
  /** Lets them go on. */
  readonly release?: () => void;
}

/** Brings a new instance into a state. */
const STATES: Record<string, (name: string) => Promise<Prepared>> = {
  "does not exist": async () => ({}),
  "is in memory": async (name) => {
    await call(name, "increment", 1);
    return {};
  },
  "is busy": async (name) => {
    await call(name, "increment", 1);
    const running = call(name, "slow", 60, "x");
    await new Promise((resolve) => setTimeout(resolve, 10));
    return { running };
  },
  "is idle": async (name) => {
    await call(name, "increment", 1);
    await becomesIdle(name);
    return {};
  },
  "is being destroyed": async (name) => {
    await call(name, "increment", 1);
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const { destroy } = JournalStore.prototype;
    vi.spyOn(JournalStore.prototype, "destroy").mockImplementationOnce(async function (
      this: JournalStore,
      id,
    ) {
      begun.resolve();
      await gate.promise;
      await destroy.call(this, id);
    });
    const running = server.api("DELETE", `${BASE}/${name}`);
    await begun.promise;
    return { running, release: gate.resolve };
  },
  "was destroyed": async (name) => {
    await call(name, "increment", 1);
    await server.api("DELETE", `${BASE}/${name}`);
    return {};
  },
};

/** The expected result of an operation: the earlier data, a new instance, or not found. */
const HAS_DATA = new Set(["is in memory", "is busy", "is idle"]);

const OPERATIONS: Record<string, (name: string, hasData: boolean, state: string) => Promise<void>> = {
  "call a method": async (name, hasData) => {
    expect((await call(name, "read")).body.result.count).toBe(hasData ? 1 : 0);
  },
  "send a request": async (name) => {
    const answer = await server.api("GET", `/agents/counter/${name}/x`);
    expect([answer.status, answer.body.name]).toEqual([200, name]);
  },
  connect: async (name, hasData) => {
    const client = await new RawClient(`${server.url}/agents/counter/${name}`).opened();
    await client.next((frame) => frame.type === "cf_agent_identity");
    expect(await client.next()).toEqual({ type: "cf_agent_state", state: { count: hasData ? 1 : 0 } });
    client.close();
  },
  show: async (name, hasData) => {
    const answer = await server.api("GET", `${BASE}/${name}`);
    expect(answer.status).toBe(hasData ? 200 : 404);
    if (hasData) expect(answer.body.result.state).toEqual({ count: 1 });
  },
  "run SQL": async (name, hasData) => {
    const answer = await server.api("POST", `${BASE}/${name}/sql`, { sql: "SELECT count(*) AS n FROM hits" });
    expect(answer.status).toBe(hasData ? 200 : 404);
  },
  "replay dead letters": async (name, hasData) => {
    const answer = await server.api("POST", `${BASE}/${name}/dead-letters/replay`, {});
    expect(answer.status).toBe(hasData ? 200 : 404);
  },
  destroy: async (name, hasData, state) => {
    const { status } = await server.api("DELETE", `${BASE}/${name}`);
    // The second of two destructions at the same time finds the instance, or does not.
    if (state === "is being destroyed") expect([200, 404]).toContain(status);
    else expect(status).toBe(hasData ? 200 : 404);
    expect((await server.api("GET", `${BASE}/${name}`)).status).toBe(404);
    expect((await call(name, "read")).body.result.count).toBe(0);
  },
};

const CELLS = Object.keys(STATES).flatMap((state) =>
  Object.keys(OPERATIONS).map((operation) => [state, operation] as const),
);

describe("an instance", () => {
  it.each(CELLS)("an instance that %s: %s", async (state, operation) => {
    serial += 1;
    const name = `matrix-${serial}`;
    const prepared = await STATES[state]?.(name);
    const operated = OPERATIONS[operation]?.(name, HAS_DATA.has(state), state);
    if (prepared?.release !== undefined) {
      // By the time this request is answered, that of the operation has arrived.
      await server.api("GET", "/healthz");
      prepared.release();
    }
    await operated;
    await prepared?.running;
    expect((await call(name, "increment", 1)).status).toBe(200);
  });
});

/** A connection in a state. Its instance is in memory unless the state says otherwise. */
const CONNECTIONS: Record<string, (name: string) => Promise<RawClient>> = {
  "has just been opened": async (name) => new RawClient(`${server.url}/agents/counter/${name}`).opened(),
  "is open": async (name) => {
    const client = await new RawClient(`${server.url}/agents/counter/${name}`).opened();
    await client.greeted();
    return client;
  },
  "is read-only": async (name) => {
    const token = await server.token(["agents.read"]);
    await server.api("POST", `/agents/counter/${name}/rpc/read`, []);
    const client = await new RawClient(`${server.url}/agents/counter/${name}`, { token }).opened();
    await client.greeted();
    return client;
  },
  "belongs to an idle instance": async (name) => {
    const client = await new RawClient(`${server.url}/agents/counter/${name}`).opened();
    await client.greeted();
    await becomesIdle(name);
    return client;
  },
};

const FRAMES: Record<string, (client: RawClient, isReadonly: boolean) => Promise<void>> = {
  "calls a method": async (client, isReadonly) => {
    expect(await client.call("increment", 2)).toMatchObject(
      isReadonly ? { success: false, error: "Connection is readonly" } : { success: true, result: 2 },
    );
  },
  "calls an unknown method": async (client) => {
    expect(await client.call("nope")).toMatchObject({ success: false, error: "Method nope does not exist" });
  },
  "sets the state": async (client, isReadonly) => {
    client.send({ type: "cf_agent_state", state: { count: 7 } });
    if (isReadonly) expect(await client.next((frame) => frame.type === "cf_agent_state_error")).toBeTruthy();
    else expect((await client.call("read")).result.count).toBe(7);
  },
  "sends an application message": async (client, isReadonly) => {
    client.send("hello");
    client.socket.send(Buffer.from([0, 1, 2]));
    if (isReadonly) expect(await client.next((frame) => frame.type === "cf_agent_state_error")).toBeTruthy();
    else expect((await client.call("read")).success).toBe(true);
  },
  "is closed and opened again": async (client) => {
    client.close();
    expect(await client.closed()).toBe(1005);
    const again = await new RawClient(client.socket.url.replace(/^ws/, "http")).opened();
    await again.greeted();
    again.close();
  },
};

const CONNECTION_CELLS = Object.keys(CONNECTIONS).flatMap((state) =>
  Object.keys(FRAMES).map((frame) => [state, frame] as const),
);

describe("a connection", () => {
  it.each(CONNECTION_CELLS)("a connection that %s: %s", async (state, frame) => {
    serial += 1;
    const client = (await CONNECTIONS[state]?.(`matrix-${serial}`)) as RawClient;
    await FRAMES[frame]?.(client, state === "is read-only");
    client.close();
  });
});

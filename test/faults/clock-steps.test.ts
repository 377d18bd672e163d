/** The system clock is set ahead by mistake and corrected: actions in between delay nothing afterwards. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { post, readLogs, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const DAY = 86_400_000;
const REAL = Date.UTC(2030, 0, 1, 12);

let server: TestServer;
let wall = REAL;
let steady = REAL;
beforeAll(async () => {
  server = await startTestServer({
    clock: { now: () => wall },
    steadyClock: { now: () => steady },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/work-agents.ts")], idleTimeoutMs: 1000 },
    },
  });
});
afterAll(() => server.stop());

const call = (headers: Record<string, string> = {}) => post(server, "echo/chat/completions", { headers });

it.each(["fixed", "sliding"])(
  "a gateway with a rate limit (%s) serves again after its interval",
  async (technique) => {
    await setGateway(server, {
      rate_limiting_limit: 1,
      rate_limiting_interval: 60,
      rate_limiting_technique: technique,
    });
    wall = REAL + DAY;
    expect((await call()).status).toBe(200);
    // The clock step opens no window early.
    wall = REAL + 2 * DAY;
    expect((await call()).status).toBe(429);
    wall = REAL;
    const refused = await call();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(60);
    steady += 60_000;
    expect((await call()).status).toBe(200);
    await setGateway(server, { rate_limiting_limit: null });
  },
);

it("stored calls are assigned to the day on which they were made", async () => {
  wall = REAL + DAY;
  await call();
  wall = REAL;
  const { headers } = await call({ "gw-aig-event-id": "after" });
  const row = (await readLogs(server)).find((candidate) => candidate["event_id"] === "after");
  expect(row).toMatchObject({ id: headers["gw-aig-log-id"], created_at: new Date(REAL).toISOString() });
  const query = new URLSearchParams({ end_date: new Date(REAL + 1000).toISOString() });
  const { body } = await server.api(
    "GET",
    `/accounts/default/ai-gateway/gateways/default/logs?${query.toString()}`,
  );
  expect(body.result.map((found: { event_id: string | null }) => found.event_id)).toContain("after");
});

it("amounts spent in between count for one window", async () => {
  const rule = { id: "r", limitType: "cost", limit: 1, window: 3600 };
  await setGateway(server, { spend_limits: { rules: [rule] }, trust_custom_cost: true });
  const cost = { "gw-aig-custom-cost": '{"total_cost":1}' };
  wall = REAL + DAY;
  expect((await call(cost)).status).toBe(200);
  wall = REAL;
  expect((await call(cost)).status).toBe(429);
  wall = REAL + 3_600_000;
  expect((await call(cost)).status).toBe(200);
});

const ask = async (instance: string, method: string, ...args: unknown[]) =>
  (await server.api("POST", `/agents/worker/${instance}/rpc/${method}`, args)).body.result;

it("a schedule runs when the clock is set past its time, at an instance that is in memory and at one that is not", async () => {
  await ask("asleep", "plan", 1800, "asleep");
  wall += 1000;
  const INSTANCES = "/accounts/default/agents/worker/instances";
  const isInMemory = async () =>
    (await server.api("GET", `${INSTANCES}?search=asleep`)).body.result[0].in_memory;
  await expect.poll(isInMemory).toBe(false);
  await ask("awake", "plan", 1800, "awake");
  wall += 3_600_000;
  await expect.poll(() => ask("awake", "done")).toEqual(["tick awake"]);
  await expect.poll(() => ask("asleep", "done")).toEqual(["tick asleep"]);
});

it("items of a queue run after the clock was set back", async () => {
  wall += DAY;
  await ask("queueing", "enqueue", ["wait one", "two"]);
  wall -= DAY;
  await ask("queueing", "enqueue", ["three"]);
  await expect.poll(() => ask("queueing", "done")).toEqual(["wait one#1", "two#1", "three#1"]);
});

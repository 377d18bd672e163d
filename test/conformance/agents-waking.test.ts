/** Waking instances for due work when few instances fit in memory. */
import { globSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as settle } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TestClock } from "../../packages/signalbox/src/testing/test-clock.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const FIXTURES = join(import.meta.dirname, "../fixtures");
const MODULES = ["gated-agent.ts", "work-agents.ts"].map((file) => join(FIXTURES, file));
const INSTANCES = "/accounts/default/agents/worker/instances";
const VICTIM = `${INSTANCES}/victim`;
/** The gate of the fixture agent. */
const GATE = Symbol.for("signalbox.test.gate");

const clock = new TestClock(Date.now());
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ clock, file: { agents: { modules: MODULES, maxActiveInstances: 1 } } });
});
afterAll(() => server.stop());

const call = (path: string, ...args: unknown[]) => server.api("POST", `/agents/${path}`, args);
const passSeconds = (seconds: number) => clock.advance(seconds * 1000, () => settle());

it("an instance that is destroyed while it waits for a place in memory is not created again", async () => {
  expect((await call("worker/victim/rpc/plan", 1, "too late")).status).toBe(200);
  // Occupies the only place in memory until the schedule is due, and longer.
  const gate = Promise.withResolvers<void>();
  (globalThis as unknown as Record<symbol, Promise<void>>)[GATE] = gate.promise;
  const blocker = call("gated-agent/blocker/rpc/hold");
  const isInMemory = async () =>
    (await server.api("GET", `${INSTANCES}?search=victim`)).body.result[0].in_memory;
  await expect.poll(isInMemory).toBe(false);
  await passSeconds(2);
  expect(Date.parse((await server.api("GET", VICTIM)).body.result.next_due_at)).toBeLessThan(clock.now());
  expect((await server.api("DELETE", VICTIM)).status).toBe(200);
  gate.resolve();
  expect((await blocker).status).toBe(200);
  // The next due instance is woken after the destroyed one.
  await expect.poll(async () => (await call("worker/next/rpc/plan", 1, "in time")).status).toBe(200);
  await passSeconds(1);
  await expect.poll(async () => (await call("worker/next/rpc/done")).body.result).toEqual(["tick in time"]);
  expect((await server.api("GET", VICTIM)).status).toBe(404);
  expect(globSync("agents/??/*.db", { cwd: server.dataDir })).toHaveLength(2);
});

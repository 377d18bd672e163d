/** Waking instances for due work when few instances fit in memory. */
import { globSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const WORK_AGENTS = join(import.meta.dirname, "../fixtures/work-agents.ts");
const VICTIM = "/accounts/default/agents/worker/instances/victim";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    file: { agents: { modules: [TEST_AGENTS, WORK_AGENTS], maxActiveInstances: 1 } },
  });
});
afterAll(() => server.stop());

const call = (path: string, ...args: unknown[]) => server.api("POST", `/agents/${path}`, args);

it("an instance that is destroyed while it waits for a place in memory is not created again", async () => {
  expect((await call("worker/victim/rpc/plan", 1, "too late")).status).toBe(200);
  // Occupies the only place in memory until after the schedule is due.
  const blocker = call("counter/blocker/rpc/slow", 2000, "busy");
  const isDue = async () =>
    Date.parse((await server.api("GET", VICTIM)).body.result.next_due_at) < Date.now();
  await expect.poll(isDue).toBe(true);
  expect((await server.api("DELETE", VICTIM)).status).toBe(200);
  expect((await blocker).status).toBe(200);
  // The next due instance is woken after the destroyed one.
  await expect.poll(async () => (await call("worker/next/rpc/plan", 1, "in time")).status).toBe(200);
  await expect.poll(async () => (await call("worker/next/rpc/done")).body.result).toEqual(["tick in time"]);
  expect((await server.api("GET", VICTIM)).status).toBe(404);
  expect(globSync("agents/??/*.db", { cwd: server.dataDir })).toHaveLength(2);
});

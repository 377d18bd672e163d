/** An instance that finds due work when it is loaded, and cannot tell the catalog, as after a take-over while the database fails. */
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { startTestServer, type TestServer } from "../../../../../test/support/test-server.ts";
import { SignalboxError } from "@signalbox/protocol";
import { InstanceCatalog } from "./instance-catalog.ts";

const WORK_AGENTS = join(import.meta.dirname, "../../../../../test/fixtures/work-agents.ts");

let server: TestServer | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  await server?.stop();
});

it("starts again and does its work", async () => {
  server = await startTestServer({ file: { agents: { modules: [WORK_AGENTS], idleTimeoutMs: 50 } } });
  const { logs, api } = server;
  const instances = "/accounts/default/agents/worker/instances";
  expect((await api("POST", "/agents/worker/late/rpc/plan", [2, "a"])).status).toBe(200);
  const isGone = async () => (await api("GET", `${instances}/late`)).body.result.status !== "active";
  await expect.poll(isGone).toBe(true);
  const find = InstanceCatalog.prototype.find;
  vi.spyOn(InstanceCatalog.prototype, "find").mockImplementation(async function (this: InstanceCatalog, ref) {
    const entry = await find.call(this, ref);
    return entry === undefined ? entry : { ...entry, nextDueAt: null };
  });
  vi.spyOn(InstanceCatalog.prototype, "setDue").mockRejectedValueOnce(
    new SignalboxError("storage_unavailable"),
  );
  const rows = async () =>
    (await api("POST", `${instances}/late/sql`, { sql: "SELECT what FROM done" })).body.result.rows;
  await expect.poll(rows).toEqual([{ what: "tick a" }]);
  // Not only a pause of its work: a connection would keep the instance in memory, and the due time would never be written.
  expect(logs.map(({ msg }) => msg)).toContain(
    "the instance's storage failed; the instance restarts from what is stored",
  );
});

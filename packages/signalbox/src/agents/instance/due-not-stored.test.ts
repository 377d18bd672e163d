/** An instance that has due work and cannot tell the catalog: the database fails. */
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

it("a call that was stored although its due time was not has an unknown outcome: a caller must not repeat it", async () => {
  server = await startTestServer({ file: { agents: { modules: [WORK_AGENTS] } } });
  const { api } = server;
  const call = (method: string, ...args: unknown[]) =>
    api("POST", `/agents/worker/partly/rpc/${method}`, args);
  expect((await call("done")).status).toBe(200);
  const setDue = vi.spyOn(InstanceCatalog.prototype, "setDue");
  setDue.mockRejectedValueOnce(new SignalboxError("storage_unavailable"));
  const { status, body } = await call("enqueue", ["a"]);
  expect([status, body.errors[0].code]).toEqual([503, 3012]);
  await expect.poll(async () => (await call("done")).body.result).toEqual(["a#1"]);
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

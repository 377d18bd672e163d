/** An instance that has due work and cannot tell the catalog: the database fails. */
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../../../../../test/support/test-server.ts";
import { SignalboxError } from "@signalbox/protocol";
import { InstanceCatalog } from "./instance-catalog.ts";

const LEDGER_AGENT = join(import.meta.dirname, "../../../../../test/fixtures/ledger-agent.ts");
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

it("a client that stays connected learns what was stored, although the storage failed before it could be told", async () => {
  server = await startTestServer({ file: { agents: { modules: [LEDGER_AGENT] } } });
  const socket = new WebSocket(`${server.url.replace(/^http/, "ws")}/agents/ledger/seen`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  const states: { count: number }[] = [];
  socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString("utf8")) as { type: string; state: { count: number } };
    if (frame.type === "cf_agent_state") states.push(frame.state);
  });
  await expect.poll(() => states.map(({ count }) => count)).toEqual([0]);
  const setDue = vi.spyOn(InstanceCatalog.prototype, "setDue");
  setDue.mockRejectedValueOnce(new SignalboxError("storage_unavailable"));
  const { status } = await server.api("POST", "/agents/ledger/seen/rpc/recordAndQueue", ["a"]);
  expect(status).toBe(503);
  await expect.poll(() => states.at(-1)?.count).toBe(1);
  expect(socket.readyState).toBe(WebSocket.OPEN);
  socket.terminate();
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

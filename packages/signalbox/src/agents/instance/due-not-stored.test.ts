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

/** Opens a socket to a ledger and adds the count of each state that it receives. */
function watchCounts(url: string, counts: number[]): WebSocket {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${ROOT_TOKEN}` } });
  socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString("utf8")) as { type: string; state: { count: number } };
    if (frame.type === "cf_agent_state") counts.push(frame.state.count);
  });
  return socket;
}

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
  const counts: number[] = [];
  const socket = watchCounts(`${server.url.replace(/^http/, "ws")}/agents/ledger/seen`, counts);
  await expect.poll(() => counts).toEqual([0]);
  const setDue = vi.spyOn(InstanceCatalog.prototype, "setDue");
  setDue.mockRejectedValueOnce(new SignalboxError("storage_unavailable"));
  const { status } = await server.api("POST", "/agents/ledger/seen/rpc/recordAndQueue", ["a"]);
  expect(status).toBe(503);
  await expect.poll(() => counts.at(-1)).toBe(1);
  expect(socket.readyState).toBe(WebSocket.OPEN);
  socket.terminate();
});

it("a client that stays connected learns it before what the calls change that wait for the instance", async () => {
  server = await startTestServer({ file: { agents: { modules: [LEDGER_AGENT] } } });
  const { api, url } = server;
  const counts: number[] = [];
  const socket = watchCounts(`${url.replace(/^http/, "ws")}/agents/ledger/onward`, counts);
  await expect.poll(() => counts).toEqual([0]);
  const setDue = vi.spyOn(InstanceCatalog.prototype, "setDue");
  setDue.mockRejectedValueOnce(new SignalboxError("storage_unavailable"));
  const call = (method: string, id: string) => api("POST", `/agents/ledger/onward/rpc/${method}`, [id]);
  const isLoading = Promise.withResolvers<void>();
  const mayLoad = Promise.withResolvers<void>();
  const find = InstanceCatalog.prototype.find;
  vi.spyOn(InstanceCatalog.prototype, "find").mockImplementation(async function (this: InstanceCatalog, ref) {
    isLoading.resolve();
    await mayLoad.promise;
    return find.call(this, ref);
  });
  expect((await call("recordAndQueue", "a")).status).toBe(503);
  const waiting = ["b", "c", "d", "e"].map((id) => call("record", id));
  await isLoading.promise;
  // Answered after the calls have arrived.
  await api("GET", "/healthz");
  mayLoad.resolve();
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
  await expect.poll(() => counts.at(-1)).toBe(1 + waiting.length);
  expect(counts).toEqual([0, 1, 2, 3, 4, 5]);
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

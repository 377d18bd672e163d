/** Callers who may only read an agent try to write, and connections try to act before the agent has decided what they may do. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const MODULE = join(import.meta.dirname, "../fixtures/identity-agents.ts");
const READONLY = { success: false, error: "Connection is readonly" };

let server: TestServer;
let reader: string;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [MODULE] } } });
  reader = await server.token(["agents.read"]);
});
afterAll(() => server.stop());

const call = async (path: string, method: string, token?: string) =>
  server.api("POST", `/agents/${path}/rpc/${method}`, [], token);

it("a method that lifts the agent's own limit does not lift that of a token", async () => {
  await call("personal/a", "visit");
  const client = await new RawClient(`${server.url}/agents/personal/a`, { token: reader }).opened();
  expect(await client.call("visit")).toMatchObject(READONLY);
  expect(await client.call("unlock")).toMatchObject({ success: true });
  expect(await client.call("visit")).toMatchObject(READONLY);
  client.send("a message");
  expect(await client.next(({ type }) => type === "cf_agent_state_error")).toMatchObject({
    error: "Connection is readonly",
  });
  client.close();
});

it("a token for reading calls nothing over HTTP", async () => {
  expect((await call("personal/a", "whoAmI", reader)).status).toBe(403);
});

it("a frame sent with the handshake waits for the agent's decision, also if the socket closes at once", async () => {
  const count = async () => (await call("slow-gate/a", "add")).body.result as number;
  expect(await count()).toBe(1);
  const rpc = { type: "rpc", id: "1", method: "add", args: [] };
  for (const id of ["guest", "broken"]) {
    const hasty = new RawClient(`${server.url}/agents/slow-gate/a?_pk=${id}`);
    await hasty.opened();
    hasty.send(rpc);
    hasty.send({ type: "cf_agent_state", state: { n: 1000 } });
    hasty.close();
    await hasty.closed();
  }
  // The same from a connection that may write takes effect.
  const writer = await new RawClient(`${server.url}/agents/slow-gate/a?_pk=writer`).opened();
  writer.send(rpc);
  writer.close();
  await writer.closed();
  const stored = async () =>
    (await server.api("GET", "/accounts/default/agents/slow-gate/instances/a")).body.result.state;
  await expect.poll(stored).toEqual({ n: 2 });
  expect(await count()).toBe(3);
  const late = await new RawClient(`${server.url}/agents/slow-gate/a?_pk=guest`).opened();
  expect(await late.call("add")).toMatchObject(READONLY);
  late.close();
});

it("a connection whose hooks fail is closed, and its messages have no effect", async () => {
  const broken = await new RawClient(`${server.url}/agents/slow-gate/b?_pk=broken`).opened();
  broken.send({ type: "rpc", id: "1", method: "add", args: [] });
  expect(await broken.closed()).toBe(1011);
  expect((await call("slow-gate/b", "add")).body.result).toBe(1);
});

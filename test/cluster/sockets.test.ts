/** WebSockets of agents at a node that does not run the instance. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ask, enter, events, findPlaces, ROOM_AGENTS } from "../support/rooms.ts";

let cluster: TestCluster;
let nodes: readonly ClusterNodeProcess[];
beforeAll(async () => {
  const agents = { modules: [ROOM_AGENTS], idleTimeoutMs: 200, maxBufferedBytes: 200_000 };
  cluster = await startTestCluster({ nodes: 2, file: { agents } });
  nodes = cluster.nodes;
});
afterAll(() => cluster.stop());

const isState = (frame: { type?: string }) => frame.type === "cf_agent_state";

/** A connection at the owner and one at the other node. */
async function both(room: string) {
  const places = await findPlaces(nodes, room);
  return {
    ...places,
    here: await enter(places.owner, room, "?_pk=here"),
    there: await enter(places.other, room, "?_pk=there&tag=far"),
  };
}

it("behaves like one at the owner", async () => {
  const { owner, here, there } = await both("same");
  expect(await ask(there, "where")).toBe(owner.pid);
  expect(await ask(there, "add", 2)).toBe(2);
  for (const client of [here, there]) expect(await client.next(isState)).toMatchObject({ state: { n: 2 } });
  here.send({ type: "cf_agent_state", state: { n: 7 } });
  expect(await there.next(isState)).toMatchObject({ state: { n: 7 } });
  there.send({ type: "cf_agent_state", state: { n: 8 } });
  expect(await here.next(isState)).toMatchObject({ state: { n: 8 } });
  there.send("hello");
  expect(await there.next((frame) => frame.echo !== undefined)).toEqual({ echo: "hello" });
  there.send("remember me");
  const [found] = await ask(there, "connected", "far");
  expect(found).toEqual({
    id: "there",
    tags: ["there", "far"],
    state: { value: "me" },
    uri: "/agents/room/same?_pk=there&tag=far",
  });
  there.socket.send(Buffer.from([1, 2, 3]));
  expect(await there.next((frame) => Buffer.isBuffer(frame))).toEqual(Buffer.from([1, 2, 3]));
  there.send({ type: "rpc", id: "s", method: "count", args: [3] });
  for (const expected of [0, 1, 2, "done"])
    expect(await there.next((frame) => frame.id === "s")).toMatchObject({ result: expected });
  expect(await there.call("missing")).toMatchObject({
    success: false,
    error: "Method missing does not exist",
  });
  await ask(here, "closeOne", "there");
  expect(await there.closed()).toBe(4002);
  await expect.poll(() => events(here, "close")).toEqual(["visitor 1005", "there 4002"]);
  here.close();
});

it("a broadcast reaches each connection once, in order with the answers", async () => {
  const { here, there } = await both("order");
  const more = await enter(nodes[0] as ClusterNodeProcess, "order", "?_pk=more");
  for (let i = 1; i <= 50; i++) there.send({ type: "rpc", id: `${i}`, method: "add", args: [] });
  for (const client of [here, there, more]) {
    for (let i = 1; i <= 50; i++) expect((await client.next(isState)).state).toEqual({ n: i });
  }
  for (let i = 1; i <= 50; i++) expect((await there.next((frame) => frame.type === "rpc")).result).toBe(i);
  for (const client of [here, there, more]) {
    expect(client.received.filter(isState)).toEqual([]);
    client.close();
  }
});

it("a client that connects with its id at another node replaces its socket", async () => {
  const { owner, other } = await findPlaces(nodes, "replaced");
  const first = await enter(owner, "replaced", "?_pk=me");
  const second = await enter(other, "replaced", "?_pk=me");
  expect(await first.closed()).toBe(4409);
  const third = await enter(owner, "replaced", "?_pk=me");
  expect(await second.closed()).toBe(4409);
  expect(await ask(third, "connected")).toMatchObject([{ id: "me" }]);
  third.close();
});

it("the agent's and the token's limits hold", async () => {
  const { other } = await findPlaces(nodes, "limits");
  const guest = await enter(other, "limits", "?_pk=guest-1");
  expect(await guest.call("add")).toMatchObject({ success: false, error: /read-only/ as unknown as string });
  const made = await other.api("POST", "/accounts/default/tokens", {
    name: "t",
    permissions: ["agents.read"],
  });
  const { token, id } = made.body.result as { token: string; id: string };
  const reader = await new RawClient(`${other.url}/agents/room/limits?_pk=reader`, { token }).opened();
  await reader.greeted();
  expect((await reader.call("add")).success).toBe(false);
  reader.send("hello");
  expect(await reader.next((frame) => frame.type === "cf_agent_state_error")).toBeDefined();
  await other.api("DELETE", `/accounts/default/tokens/${id}`);
  expect(await reader.closed()).toBe(4401);
  await expect.poll(() => events(guest, "close")).toEqual(["visitor 1005", expect.stringMatching(/^reader/)]);
  guest.close();
});

it("the instance leaves memory while its sockets stay open, and a message loads it", async () => {
  const { owner, there } = await both("asleep");
  const show = async () =>
    (await owner.api("GET", "/accounts/default/agents/room/instances/asleep")).body.result;
  await expect.poll(async () => (await show()).status).not.toBe("active");
  there.send("hello");
  expect(await there.next((frame) => frame.echo !== undefined)).toEqual({ echo: "hello" });
  expect(await events(there, "connect")).toEqual(["visitor", "here", "there"]);
  there.close();
});

it("a slow reader is closed alone", async () => {
  const { here, there, other } = await both("slow");
  const slow = await enter(other, "slow", "?_pk=slow");
  slow.socket.pause();
  const text = "x".repeat(100_000);
  for (let i = 0; i < 60; i++) {
    await ask(here, "say", JSON.stringify({ text, i }));
    expect((await there.next((frame) => frame.i === i)).text.length).toBe(100_000);
  }
  await expect.poll(() => events(here, "close")).toEqual(["visitor 1005", expect.stringMatching(/^slow/)]);
  for (const client of [here, there]) client.close();
  slow.socket.terminate();
});

it("a destroyed instance closes its sockets at every node", async () => {
  const { here, there } = await both("destroyed");
  await here.call("end").catch(() => undefined);
  expect([await here.closed(), await there.closed()]).toEqual([4410, 4410]);
});

it("a reader waits for an instance that another node creates", async () => {
  const [node] = nodes as [ClusterNodeProcess];
  const made = await node.api("POST", "/accounts/default/tokens", {
    name: "t",
    permissions: ["agents.read"],
  });
  const { token } = made.body.result as { token: string };
  const readers = await Promise.all(
    nodes.map((node) => new RawClient(`${node.url}/agents/room/awaited`, { token }).opened()),
  );
  for (const reader of readers) await reader.greeted();
  const writer = await enter(nodes[1] as ClusterNodeProcess, "awaited", "?_pk=writer");
  await ask(writer, "add", 5);
  for (const reader of readers) await reader.next((frame) => isState(frame) && frame.state.n === 5);
  for (const client of [...readers, writer]) client.close();
});

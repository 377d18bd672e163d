/** WebSockets while operators move their instance: every state once, no message lost or run twice, no second `onConnect`. */
import { randomUUID } from "node:crypto";
import { AgentClient } from "agents/client";
import { AgentClient as AgentClient14 } from "agents-14/client";
import { AgentClient as AgentClient3 } from "agents-3/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RawClient } from "../support/agents.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ask, enter, events, ROOM_AGENTS } from "../support/rooms.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";

let cluster: TestCluster;
let nodes: readonly [ClusterNodeProcess, ClusterNodeProcess, ClusterNodeProcess];
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 3, file: { agents: { modules: [ROOM_AGENTS] } } });
  nodes = cluster.nodes as unknown as typeof nodes;
});
afterAll(() => cluster.stop());

/** Moves the room, as asked at any node. */
async function move(room: string, at: ClusterNodeProcess, to: ClusterNodeProcess): Promise<void> {
  const path = `/accounts/default/agents/room/instances/${room}/move`;
  const { status, body } = await at.api("POST", path, { to: to.name });
  expect({ status, node: body.result?.node }).toEqual({ status: 200, node: to.name });
}

const isState = (frame: { type?: string }) => frame.type === "cf_agent_state";
const statesOf = (client: RawClient): number[] =>
  client.received.filter(isState).map(({ state }) => state.n as number);
const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

it("clients at every node follow an instance that is moved again and again while they call it", async () => {
  const room = `tour-${randomUUID()}`;
  const clients = await Promise.all(nodes.map((node, i) => enter(node, room, `?_pk=c${i}&tag=t${i}`)));
  const [first] = clients as [RawClient, RawClient, RawClient];
  for (const [i, client] of clients.entries()) client.send(`remember ${i}`);
  let isDone = false;
  // Each client has one call under way: every state is one answer.
  const results = await Promise.all([
    ...clients.map(async (client) => {
      const own: number[] = [];
      while (!isDone) own.push(await ask(client, "add"));
      return own;
    }),
    (async () => {
      const seen = new Set<number>();
      for (let i = 0; i < 12; i++) {
        const to = nodes[(i * 2 + 1) % 3] as ClusterNodeProcess;
        await move(room, nodes[i % 3] as ClusterNodeProcess, to);
        // All have followed: what is broadcast by an owner that a client never reached is left out for it.
        for (const client of clients) expect(await ask(client, "where")).toBe(to.pid);
        seen.add(to.pid);
      }
      expect(seen.size).toBe(3);
      isDone = true;
      return [];
    })(),
  ]);
  const all = results.flat().sort((a, b) => a - b);
  const last = all.length;
  expect(all).toEqual(upTo(last));
  for (const [i, client] of clients.entries()) {
    await expect.poll(() => statesOf(client).at(-1)).toBe(last);
    expect(statesOf(client)).toEqual(upTo(last));
    client.send("recall");
    expect(await client.next((frame) => frame.recalled !== undefined)).toEqual({
      recalled: { value: String(i) },
    });
    expect(await ask(client, "connected", `t${i}`)).toMatchObject([{ id: `c${i}` }]);
  }
  expect((await events(first, "connect")).toSorted()).toEqual(["c0", "c1", "c2"]);
  expect(await events(first, "close")).toEqual([]);
  for (const client of clients) client.close();
});

it("large messages, a streaming call and the close of a socket cross a move", async () => {
  const [a, b, c] = nodes;
  const staying = await enter(a, "heavy", "?_pk=staying");
  const leaving = await enter(b, "heavy", "?_pk=leaving");
  await move("heavy", a, c);
  const text = "x".repeat(900_000);
  staying.send({ type: "rpc", id: "s", method: "count", args: [40, 5] });
  for (let i = 0; i < 4; i++) {
    staying.socket.send(Buffer.from(`${i}${text}`));
    if (i === 1) void move("heavy", b, a);
  }
  leaving.close();
  for (let i = 0; i < 40; i++) expect((await staying.next((frame) => frame.id === "s")).result).toBe(i);
  expect((await staying.next((frame) => frame.id === "s")).result).toBe("done");
  for (let i = 0; i < 4; i++) {
    const echo = (await staying.next((frame) => Buffer.isBuffer(frame))) as Buffer;
    expect([echo.length, echo.toString("latin1", 0, 1)]).toEqual([900_001, String(i)]);
  }
  await expect.poll(() => events(staying, "close")).toEqual(["leaving 1005"]);
  expect(await ask(staying, "where")).toBe(a.pid);
  expect((await events(staying, "connect")).toSorted()).toEqual(["leaving", "staying"]);
  staying.close();
});

it("an instance that is not in memory is moved with its sockets, and destroyed with them", async () => {
  const [a, b, c] = nodes;
  const there = await enter(a, "asleep", "?_pk=there");
  expect(await ask(there, "add", 5)).toBe(5);
  const show = async () =>
    (await a.api("GET", "/accounts/default/agents/room/instances/asleep")).body.result as { status: string };
  await expect.poll(async () => (await show()).status).not.toBe("active");
  await move("asleep", a, b);
  await move("asleep", b, c);
  expect(await ask(there, "add")).toBe(6);
  expect(statesOf(there)).toEqual([5, 6]);
  expect(await events(there, "connect")).toEqual(["there"]);
  expect((await b.api("DELETE", "/accounts/default/agents/room/instances/asleep")).status).toBe(200);
  expect(await there.closed()).toBe(4410);
});

it.each([
  ["0.32.0", AgentClient],
  ["0.14.4", AgentClient14 as unknown as typeof AgentClient],
  ["0.3.2", AgentClient3 as unknown as typeof AgentClient],
])("the original client %s stays connected while its instance is moved", async (version, Client) => {
  const [a, b, c] = nodes;
  const room = `original-${version.replaceAll(".", "-")}`;
  const states: number[] = [];
  let opened = 0;
  const client = new Client<{ n: number }>({
    agent: "Room",
    name: room,
    host: new URL(a.url).host,
    query: { token: ROOT_TOKEN },
    onStateUpdate: ({ n }) => states.push(n),
  });
  client.addEventListener("open", () => (opened += 1));
  try {
    await expect.poll(() => states).toEqual([0]);
    let last = 0;
    for (const to of [b, c, a, c]) {
      const moved = move(room, b, to);
      for (let i = 0; i < 10; i++) expect(await client.call("add", [])).toBe(++last);
      await moved;
      expect(await client.call("where", [])).toBe(to.pid);
    }
    await expect.poll(() => states.at(-1)).toBe(last);
    expect(states).toEqual([0, ...upTo(last)]);
    expect(opened).toBe(1);
    expect(await client.call("events", ["connect"])).toHaveLength(1);
  } finally {
    client.close();
  }
});

/** WebSockets of agents at a node that does not run the instance. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { join } from "node:path";
import { RawClient } from "../support/agents.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";

const ROOMS = join(import.meta.dirname, "../fixtures/room-agents.ts");
let cluster: TestCluster;
let nodes: readonly ClusterNodeProcess[];
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, file: { agents: { modules: [ROOMS] } } });
  nodes = cluster.nodes;
});
afterAll(() => cluster.stop());

const connect = async (node: ClusterNodeProcess, room: string, query = "") => {
  const client = await new RawClient(`${node.url}/agents/room/${room}${query}`).opened();
  await client.greeted();
  return client;
};
const result = async (client: RawClient, method: string, ...args: unknown[]) => {
  const frame = await client.call(method, ...args);
  expect(frame).toMatchObject({ success: true });
  return frame.result;
};
/** A connection at the owner and one at the other node. */
async function both(room: string, query = "") {
  const first = await connect(
    nodes[0] as ClusterNodeProcess,
    room,
    `${query}${query === "" ? "?" : "&"}_pk=one`,
  );
  const pid = await result(first, "where");
  const other = nodes.find((node) => node.pid !== pid) as ClusterNodeProcess;
  const owner = nodes.find((node) => node.pid === pid) as ClusterNodeProcess;
  first.close();
  await first.closed();
  return {
    owner,
    other,
    here: await connect(owner, room, "?_pk=here"),
    there: await connect(other, room, "?_pk=there&tag=far"),
  };
}

it("behaves like one at the owner", async () => {
  const { owner, here, there } = await both("same");
  expect(await result(there, "where")).toBe(owner.pid);
  expect(await result(there, "add", 2)).toBe(2);
  for (const client of [here, there])
    expect(await client.next((frame) => frame.type === "cf_agent_state")).toMatchObject({ state: { n: 2 } });
  here.send({ type: "cf_agent_state", state: { n: 7 } });
  expect(await there.next((frame) => frame.type === "cf_agent_state")).toMatchObject({ state: { n: 7 } });
  there.send({ type: "cf_agent_state", state: { n: 8 } });
  expect(await here.next((frame) => frame.type === "cf_agent_state")).toMatchObject({ state: { n: 8 } });
  there.send("hello");
  expect(await there.next((frame) => frame.echo !== undefined)).toEqual({ echo: "hello" });
  there.send("remember me");
  expect(await result(there, "connected", "far")).toMatchObject([
    { id: "there", tags: ["there", "far"], state: { value: "me" } },
  ]);
  there.socket.send(Buffer.from([1, 2, 3]));
  expect(await there.next((frame) => Buffer.isBuffer(frame))).toEqual(Buffer.from([1, 2, 3]));
  there.send({ type: "rpc", id: "s", method: "count", args: [3] });
  for (const expected of [0, 1, 2, "done"])
    expect(await there.next((frame) => frame.id === "s")).toMatchObject({ result: expected });
  await result(here, "closeOne", "there");
  expect(await there.closed()).toBe(4002);
  await expect
    .poll(async () =>
      (await result(here, "events", "close")).map(
        ({ who, detail }: { who: string; detail: string }) => `${who} ${detail}`,
      ),
    )
    .toEqual(["one 1005", "there 4002"]);
  here.close();
});

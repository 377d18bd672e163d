/** Management of instances, their lists and their live tails, at any node. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import type { Answer } from "../support/send-request.ts";
import { waitUntil } from "../support/wait-until.ts";

const ROAMING_AGENTS = join(import.meta.dirname, "../fixtures/roaming-agents.ts");
const INSTANCES = "/accounts/default/agents/roamer/instances";

let cluster: TestCluster;
let nodes: ClusterNodeProcess[];
beforeAll(async () => {
  cluster = await startTestCluster({
    nodes: 2,
    file: {
      agents: {
        modules: [ROAMING_AGENTS],
        // Longer than the test: what is in memory stays there.
        idleTimeoutMs: 3_600_000,
        tagChanges: [{ agent: "roamer", name: "tags-0", account: "default" }],
      },
    },
  });
  nodes = [...cluster.nodes];
});
afterAll(() => cluster.stop());

function at(node: number): ClusterNodeProcess {
  const found = nodes[node % nodes.length];
  if (found === undefined) throw new Error("no node");
  return found;
}

const call = (node: number, name: string, method: string, args: unknown[] = []): Promise<Answer> =>
  at(node).api("POST", `/agents/roamer/${name}/rpc/${method}`, args);

async function ownerOf(name: string): Promise<number> {
  const { result } = (await call(0, name, "where")).body as { result: number };
  return nodes.findIndex(({ pid }) => pid === result);
}

/** The same answer at both nodes. */
async function both(method: string, path: string, body?: unknown): Promise<Answer> {
  const [first, second] = [await at(0).api(method, path, body), await at(1).api(method, path, body)];
  expect({ status: second.status, body: second.body }).toEqual({ status: first.status, body: first.body });
  return first;
}

it("an instance is shown by every node as by its owner", async () => {
  await call(0, "shown", "increment", [3]);
  await call(0, "shown", "later");
  expect((await both("GET", `${INSTANCES}/shown`)).body.result).toMatchObject({
    name: "shown",
    in_memory: true,
    state: { count: 3 },
    schedule_count: 1,
  });
  expect((await both("GET", `${INSTANCES}/shown/schedules`)).body.result).toMatchObject([
    { callback: "buried" },
  ]);
  expect((await both("GET", `${INSTANCES}/shown/queue?limit=5`)).body.result).toEqual([]);
  expect((await both("GET", `${INSTANCES}/shown/connections`)).body.result).toEqual([]);
  const recent = (await both("GET", `${INSTANCES}/shown/events`)).body.result as { type: string }[];
  expect(recent.map(({ type }) => type)).toContain("turn");
  const query = { sql: "SELECT count(*) AS n FROM sqlite_schema WHERE name = 'seen'" };
  expect((await both("POST", `${INSTANCES}/shown/sql`, query)).body.result.rows).toEqual([{ n: 1 }]);
});

it("errors are the same at both nodes", async () => {
  await call(0, "errors", "where");
  const instance = `${INSTANCES}/errors`;
  expect((await both("GET", `${INSTANCES}/missing`)).body.errors[0].code).toBe(3003);
  expect((await both("POST", `${instance}/sql`, { sql: "DROP TABLE seen" })).body.errors[0].code).toBe(3011);
  expect((await both("POST", `${instance}/sql`, { sql: 5 })).status).toBe(400);
  expect((await both("GET", `${instance}?nope=1`)).status).toBe(400);
  expect((await both("GET", `${instance}/queue?cursor=x`)).status).toBe(400);
  expect((await both("GET", `${instance}/dead-letters/nope`)).status).toBe(404);
  for (const node of [0, 1])
    expect((await at(node).api("GET", instance, undefined, "sbx_wrong")).status).toBe(401);
});

it("dead letters are listed, replayed and discarded at the node that does not own the instance", async () => {
  const other = (await ownerOf("dead")) + 1;
  const path = `${INSTANCES}/dead/dead-letters`;
  const buried = () =>
    waitUntil(
      async () => (await at(0).api("GET", path)).body.result as object[],
      ({ length }) => length === 1,
    );
  const letters = async () => (await both("GET", path)).body.result as { id: string }[];
  await call(0, "dead", "bury");
  await buried();
  expect(await letters()).toHaveLength(1);
  const replayed = await at(other).api("POST", `${INSTANCES}/dead/dead-letters/replay`, {});
  expect(replayed.body.result).toMatchObject({ replayed: 1 });
  await buried();
  const [letter] = await letters();
  expect((await at(other).api("DELETE", `${INSTANCES}/dead/dead-letters/${letter?.id}`)).status).toBe(200);
  expect(await letters()).toEqual([]);
});

it("an instance is destroyed through the other node, and made again", async () => {
  const owner = await ownerOf("doomed");
  await call(owner, "doomed", "increment", [7]);
  expect((await at(owner + 1).api("DELETE", `${INSTANCES}/doomed`)).status).toBe(200);
  expect((await both("GET", `${INSTANCES}/doomed`)).status).toBe(404);
  expect((await call(owner + 1, "doomed", "count")).body.result).toBe(0);
});

it("lists of both nodes know which instances are in memory anywhere", async () => {
  const names = Array.from({ length: 12 }, (_, i) => `listed-${String(i).padStart(2, "0")}`);
  const owners = await Promise.all(names.map(ownerOf));
  expect(new Set(owners).size).toBe(2);
  for (const node of [0, 1]) {
    // A node that does not answer the other one in time counts as one that has none in memory.
    const listed = await waitUntil(
      async () =>
        (await at(node).api("GET", `${INSTANCES}?search=listed-`)).body.result as {
          name: string;
          in_memory: boolean;
        }[],
      (found) => found.every(({ in_memory: isInMemory }) => isInMemory),
    );
    expect(listed.map(({ name }) => name)).toEqual(names);
  }
});

/** A live tail; collects what it receives. */
async function tail(node: number, name: string) {
  const request = httpRequest(`${at(node).url}${INSTANCES}/${name}/events`, {
    agent: false,
    headers: { accept: "text/event-stream", authorization: `Bearer ${ROOT_TOKEN}` },
  });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  const received = { text: "" };
  response.on("error", () => undefined).on("data", (chunk: Buffer) => (received.text += chunk.toString()));
  await waitUntil(
    () => received.text,
    (text) => text.includes(": listening"),
  );
  return { received, close: () => request.destroy() };
}

it("a live tail at any node shows the instance, from its creation on", async () => {
  const tails = [await tail(0, "tailed"), await tail(1, "tailed")];
  await call(0, "tailed", "increment");
  for (const { received, close } of tails) {
    await waitUntil(
      () => received.text,
      (text) => text.includes("event: start") && text.includes("increment"),
    );
    close();
  }
});

it("tag changes are delivered once, by one node", async () => {
  const resource = { resource_type: "ai_gateway", resource_id: "default" };
  for (let i = 0; i < 6; i++)
    expect(
      (await at(i).api("PUT", "/accounts/default/tags", { ...resource, tags: { round: String(i) } })).status,
    ).toBe(200);
  const ids = async () => (await call(0, "tags-0", "seen")).body.result as string[];
  await waitUntil(ids, ({ length }) => length >= 6);
  const positions = (await ids()).map((id) => Number(id.split(":").at(-1)));
  expect(positions).toEqual([...new Set(positions)].toSorted((a, b) => a - b));
  expect(positions).toHaveLength(6);
});

/** Operators see on which node an instance is, move it, and see what the nodes have done. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { readMetric } from "../support/read-metric.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import type { Answer } from "../support/send-request.ts";
import { runCliProcess } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const MODULE = join(import.meta.dirname, "../fixtures/moving-agent.ts");
const INSTANCES = "/accounts/default/agents/moving-agent/instances";

let cluster: TestCluster;
let left: ClusterNodeProcess;
let right: ClusterNodeProcess;

beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, args: ["--agents", MODULE] });
  [left, right] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
  for (const node of [left, right])
    await waitUntil(
      () => node.api("GET", "/cluster/nodes"),
      ({ body }) =>
        body.result.length === 2 && body.result.every(({ link }: { link: string }) => link !== "down"),
    );
});
afterAll(() => cluster.stop());

const call = (node: ClusterNodeProcess, name: string, method: string): Promise<Answer> =>
  node.api("POST", `/agents/moving-agent/${name}/rpc/${method}`, []);

/** The node that runs the instance. */
const ownerOf = async (name: string) => {
  const { body } = await waitUntil(
    async () => ({ body: (await left.api("GET", INSTANCES)).body }),
    (answer) => Array.isArray(answer.body.result),
  );
  const found = body.result.find((one: { name: string }) => one.name === name) as { node: string | null };
  return found.node === "node-1" ? left : right;
};
const otherOf = (node: ClusterNodeProcess) => (node === left ? right : left);

it("an instance is moved to a node by name, with its state, and is listed there", async () => {
  for (const node of [left, right]) if ((await call(node, "one", "add")).status === 200) break;
  const owner = await ownerOf("one");
  const other = otherOf(owner);
  const detail = await owner.api("GET", `${INSTANCES}/one`);
  expect(detail.body.result).toMatchObject({ node: owner.name, state: { count: 1 } });
  const moved = await owner.api("POST", `${INSTANCES}/one/move`, { to: other.name });
  expect(moved.body.result).toEqual({ agent: "moving-agent", name: "one", node: other.name });
  expect((await call(other, "one", "add")).body.result).toBe(2);
  expect(await ownerOf("one")).toBe(other);
  expect((await left.api("GET", INSTANCES)).body.result).toMatchObject([{ name: "one", node: other.name }]);
});

it("the command line moves an instance, and shows its node", async () => {
  for (const node of [left, right]) if ((await call(node, "two", "add")).status === 200) break;
  const owner = await ownerOf("two");
  const run = (...args: string[]) =>
    runCliProcess(["agents", ...args, "--url", owner.url], { env: { SIGNALBOX_TOKEN: ROOT_TOKEN } });
  const { stdout, code } = await run("move", "moving-agent", "two");
  expect({ stdout, code }).toEqual({ stdout: `moved moving-agent/two to ${otherOf(owner).name}\n`, code: 0 });
  expect((await run("instances", "moving-agent")).stdout).toContain(otherOf(owner).name);
});

it("a node that does not exist, an instance that does not exist, and a move by a reader are refused", async () => {
  for (const node of [left, right]) if ((await call(node, "three", "add")).status === 200) break;
  const owner = await ownerOf("three");
  const targets = await owner.api("GET", `${INSTANCES}/three/move`);
  expect(targets.body.result.map(({ name }: { name: string }) => name)).toEqual(["node-1", "node-2"]);
  expect((await owner.api("GET", `${INSTANCES}/nobody/move`)).status).toBe(404);
  const unknown = await owner.api("POST", `${INSTANCES}/three/move`, { to: "node-9" });
  expect(unknown.status).toBe(400);
  expect(unknown.body.errors[0].message).toContain('No node with the name or id "node-9" is up');
  expect((await owner.api("POST", `${INSTANCES}/nobody/move`, {})).status).toBe(404);
  expect((await owner.api("POST", `${INSTANCES}/three/move`, { where: "node-1" })).status).toBe(400);
  const made = await owner.api("POST", "/accounts/default/tokens", {
    name: "reader",
    permissions: ["agents.read"],
  });
  const reader = made.body.result.token as string;
  expect((await owner.api("POST", `${INSTANCES}/three/move`, {}, reader)).status).toBe(403);
  expect((await owner.api("GET", `${INSTANCES}/three/move`, undefined, reader)).status).toBe(403);
  expect(await ownerOf("three")).toBe(owner);
});

it("metrics and the state of the cluster count claims, and the histories have a size", async () => {
  const claims = await Promise.all(
    [left, right].map((node) => readMetric(node, "signalbox_agent_store_claims_total")),
  );
  expect(claims.reduce((a, b) => a + b)).toBeGreaterThanOrEqual(4);
  for (const node of [left, right]) {
    const { body } = await waitUntil(
      () => node.api("GET", "/cluster"),
      (answer) => answer.body.result.agents.log_bytes > 0,
    );
    expect(body.result.agents).toMatchObject({ refusals: 0, lost_records: 0, unknown_outcomes: 0 });
    expect(await readMetric(node, "signalbox_agent_store_held_instances")).toBe(body.result.agents.held);
  }
});

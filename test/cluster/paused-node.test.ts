/** A process is paused, as by a suspended machine, and continues with what it had in memory. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";

let cluster: TestCluster;
let first: ClusterNodeProcess;
let paused: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2 });
  [first, paused] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
});
afterAll(() => cluster.stop());

const namesAt = async (node: ClusterNodeProcess) =>
  (await node.api("GET", "/cluster/nodes")).body.result.map(({ name }: { name: string }) => name);

it("a node that was paused is declared dead, and accepts no token afterwards that was revoked meanwhile", async () => {
  const { id, token } = (
    await first.api("POST", "/accounts/default/tokens", { name: "t", permissions: ["tags.read"] })
  ).body.result as { id: string; token: string };
  const read = () => paused.api("GET", "/accounts/default/tags/keys", undefined, token);
  expect((await read()).status).toBe(200);
  paused.child.kill("SIGSTOP");
  // The revocation waits until the paused node is dead, and not for the node itself.
  expect((await first.api("DELETE", `/accounts/default/tokens/${id}`)).status).toBe(200);
  expect(await namesAt(first)).toEqual(["node-1"]);
  const waiting = [read(), read(), read()];
  paused.child.kill("SIGCONT");
  for (const answer of waiting) expect((await answer).status).toBe(401);
  await expect.poll(() => namesAt(first)).toEqual(["node-1", "node-2"]);
  expect((await paused.api("GET", "/readyz", undefined, null)).status).toBe(200);
});

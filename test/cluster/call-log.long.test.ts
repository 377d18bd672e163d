/** The call log of a cluster: a call is listed at every node by the time its client has the answer. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { callEcho } from "../support/send-request.ts";
import { waitUntil } from "../support/wait-until.ts";

const GATEWAY = "/accounts/default/ai-gateway/gateways/default";

let cluster: TestCluster;
beforeAll(async () => {
  // A flush interval longer than the test: rows are listed because reads ask for them, not because time passes.
  cluster = await startTestCluster({
    nodes: 2,
    file: { gateway: { logs: { flushIntervalMs: 10_000 } } },
  });
});
afterAll(() => cluster.stop());

const node = (i: number): ClusterNodeProcess => {
  const found = cluster.nodes[i];
  if (found === undefined) throw new Error(`there is no node ${i}`);
  return found;
};
const makeCall = async (i: number) => (await callEcho(node(i))).headers.get("gw-aig-log-id") ?? "";
/** A list during which a node dies may be refused on a slow machine; a client tries again. */
const listed = async (i: number): Promise<string[]> => {
  const { body } = await waitUntil(
    () => node(i).api("GET", `${GATEWAY}/logs?per_page=1000&direction=asc`),
    ({ status }) => status !== 503,
  );
  return (body.result as { id: string }[]).map(({ id }) => id);
};
const counted = async (i: number): Promise<number> => {
  const { body } = await node(i).api("GET", "/accounts/default/ai-gateway/usage");
  return (body.result as { calls: number }[])[0]?.calls ?? 0;
};

it("a call at one node is listed, counted, shown, edited and deleted at the other", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 10; i++) {
    ids.push(await makeCall(i % 2));
    expect((await listed((i + 1) % 2)).toSorted()).toEqual(ids.toSorted());
  }
  expect([await counted(0), await counted(1)]).toEqual([10, 10]);
  const last = await makeCall(0);
  expect((await node(1).api("GET", `${GATEWAY}/logs/${last}`)).body.result).toMatchObject({ id: last });
  expect((await node(1).api("GET", `${GATEWAY}/logs/${last}/response`)).status).toBe(200);
  expect((await node(1).api("PATCH", `${GATEWAY}/logs/${last}`, { feedback: 1 })).status).toBe(200);
  expect((await node(0).api("GET", `${GATEWAY}/logs/${last}`)).body.result).toMatchObject({ feedback: 1 });
  const waiting = await makeCall(0);
  expect((await node(1).api("DELETE", `${GATEWAY}/logs`)).body.result).toMatchObject({ deleted: 12 });
  expect(await listed(0)).not.toContain(waiting);
});

it("a node that is killed delays the lists of the others for a moment, and takes only its queue with it", async () => {
  const kept = await makeCall(1);
  expect(await listed(0)).toContain(kept);
  const third = await cluster.join({ name: "node-3", mayDie: true });
  const flushed = (await callEcho(third)).headers.get("gw-aig-log-id") ?? "";
  expect(await listed(0)).toContain(flushed);
  const queued = (await callEcho(third)).headers.get("gw-aig-log-id");
  await third.end("SIGKILL");
  const ids = await listed(0);
  // Its queue is written every ten seconds, so the last call may have been written before the kill.
  expect(ids.filter((id) => id !== queued)).toEqual([kept, flushed]);
  expect(await listed(1)).toEqual(ids);
});

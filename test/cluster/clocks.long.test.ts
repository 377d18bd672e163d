/** A node whose clock is wrong. PostgreSQL's clock decides who is alive; expiry times are compared with the clock of the node. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { readMetric } from "../support/read-metric.ts";
import { callEcho, createToken } from "../support/send-request.ts";

const PRELOAD = pathToFileURL(join(import.meta.dirname, "../support/clock-preload.ts")).href;

let cluster: TestCluster;
let right: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 1 });
  [right] = cluster.nodes as [ClusterNodeProcess];
});
afterAll(() => cluster.stop());

const joinWith = (name: string, offsetMs: number) =>
  cluster.join({
    name,
    mayDie: true,
    env: { NODE_OPTIONS: `--import=${PRELOAD}`, SIGNALBOX_TEST_CLOCK_MS: String(offsetMs) },
  });
const ready = (node: ClusterNodeProcess) => node.api("GET", "/readyz", undefined, null);

it.each([
  ["ahead", 3_600_000, /3\d{3} s ahead of PostgreSQL's/],
  ["behind", -60_000, /\d+ s behind PostgreSQL's/],
])("a node whose clock is %s is a member, says that it is not ready, and serves", async (name, ms, text) => {
  const node = await joinWith(name, ms);
  // Without a heartbeat for two seconds, another reason is given.
  await expect
    .poll(async () => {
      const { status, text: reason } = await ready(node);
      return [status, reason];
    })
    .toEqual([503, expect.stringMatching(text)]);
  // It is not dead: only PostgreSQL's clock measures heartbeats.
  const names = async () =>
    ((await right.api("GET", "/cluster/nodes")).body.result as { name: string }[]).map(
      ({ name: one }) => one,
    );
  await expect.poll(names).toContain(name);
  expect((await callEcho(node)).status).toBe(200);
  const made = await createToken(right);
  expect((await node.api("GET", "/accounts/default/tokens")).text).toContain(made.body.result.id);
  const { clock_offset_ms: offset } = (await node.api("GET", "/cluster")).body.result;
  expect(Math.abs(offset - ms)).toBeLessThan(30_000);
  const metric = await readMetric(node, "signalbox_database_clock_offset_seconds");
  expect(Math.sign(metric)).toBe(Math.sign(ms));
  await expect.poll(async () => (await ready(right)).status).toBe(200);
  await node.kill();
});

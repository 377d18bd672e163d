/** A node is stopped while a load balancer still sends it requests. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { callEcho } from "../support/send-request.ts";
import { runCliProcess } from "../support/server-process.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";

let cluster: TestCluster;
let staying: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 1, file: { listener: { lameDuckMs: 6000 } } });
  [staying] = cluster.nodes as [ClusterNodeProcess];
});
afterAll(() => cluster.stop());

const namesAndStates = async () =>
  (await staying.api("GET", "/cluster/nodes")).body.result.map((node: { name: string; state: string }) => [
    node.name,
    node.state,
  ]);

it("a stopped node is not ready, serves for listener.lameDuckMs, finishes what runs, and leaves", async () => {
  const leaving = await cluster.join({ name: "leaving" });
  await expect.poll(namesAndStates).toEqual([
    ["node-1", "up"],
    ["leaving", "up"],
  ]);
  const kept = await callEcho(leaving);
  expect([kept.status, kept.headers.get("connection")]).toEqual([200, "keep-alive"]);
  const exit = leaving.end("SIGTERM");
  await expect
    .poll(async () => (await leaving.api("GET", "/readyz", undefined, null)).text)
    .toContain("Not ready: stopping");
  expect((await leaving.api("GET", "/healthz", undefined, null)).status).toBe(200);
  await expect.poll(namesAndStates).toEqual([
    ["node-1", "up"],
    ["leaving", "draining"],
  ]);
  // New connections are accepted, and each response tells the client to connect again elsewhere.
  const served = await callEcho(leaving);
  expect([served.status, served.headers.get("connection")]).toEqual([200, "close"]);
  // A call that begins before the end of the lame duck is finished.
  const results: number[] = [];
  let isRefused = false;
  while (!isRefused) {
    await callEcho(leaving).then(
      ({ status }) => results.push(status),
      () => (isRefused = true),
    );
  }
  expect(new Set(results)).toEqual(new Set([200]));
  expect(await exit).toBe(0);
  await expect.poll(namesAndStates).toEqual([["node-1", "up"]]);
});

it("signalbox cluster nodes prints the nodes as a table and as JSON", async () => {
  const other = await cluster.join({ name: "other", mayDie: true });
  const options = ["--url", staying.url, "--token", ROOT_TOKEN];
  await expect.poll(async () => (await namesAndStates()).length).toBe(2);
  const printed = await runCliProcess(["cluster", "nodes", ...options]);
  expect([printed.code, printed.stderr]).toEqual([0, ""]);
  const [head, ...rows] = printed.stdout.trim().split("\n");
  expect(head?.split(/ {2,}/)).toEqual([
    "ID",
    "NAME",
    "ADDRESS",
    "VERSION",
    "STATE",
    "HEARTBEAT",
    "JOINED",
    "LINK",
    "INSTANCES",
  ]);
  expect(rows.map((row) => row.split(/ {2,}/)[1])).toEqual(["node-1", "other"]);
  const json = await runCliProcess(["cluster", "nodes", "--json", ...options]);
  expect(JSON.parse(json.stdout)).toMatchObject([
    { name: "node-1", state: "up", link: "self" },
    { name: "other", state: "up", link: expect.stringMatching(/up|down/) },
  ]);
  const status = await runCliProcess(["cluster", "status", ...options]);
  expect(status.stdout).toMatch(/^fsync +off UNSAFE: a crash/m);
  expect(status.stdout).toMatch(/^mode +cluster$/m);
  await other.kill();
});

it("the routes of the cluster are for the root token only", async () => {
  const { body } = await staying.api("POST", "/accounts/default/tokens", {
    name: "reader",
    permissions: ["gateway.read"],
  });
  for (const path of ["/cluster", "/cluster/nodes"]) {
    expect((await staying.api("GET", path, undefined, body.result.token)).status).toBe(403);
    expect((await staying.api("GET", path, undefined, null)).status).toBe(401);
  }
});

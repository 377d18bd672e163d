import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { callEcho, sendRequest } from "../support/send-request.ts";
import { waitUntil } from "../support/wait-until.ts";
import { runExample, type RunningExample } from "./run-example.ts";

it("the cluster starts with one command, serves through the load balancer, ends cleanly and keeps its data", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-example-cluster-"));
  const started: RunningExample[] = [];
  const start = async () => {
    const example = runExample("cluster", ["--port", "0", "--data-dir", folder]);
    started.push(example);
    const [, url = ""] = await example.printed(/Load balancer\s+(\S+)/);
    const [, credential = ""] = await example.printed(/Root token\s+(\S+)/);
    await example.printed(/Ctrl-C ends everything/);
    const nodes = [...example.output().matchAll(/Node \d\s+(\S+)/g)].map(([, node = ""]) => node);
    return { example, target: { url, credential }, nodes: nodes.map((node) => ({ url: node, credential })) };
  };
  const path = "/accounts/default/tags?resource_type=worker&resource_id=x";
  try {
    const first = await start();
    expect(first.nodes).toHaveLength(3);
    expect((await callEcho(first.target)).status).toBe(200);
    const tags = { resource_type: "worker", resource_id: "x", tags: { env: "prod" } };
    expect((await sendRequest(first.target, "PUT", "/accounts/default/tags", tags)).status).toBe(200);
    for (const node of first.nodes) {
      expect((await sendRequest(node, "GET", path)).body.result.tags).toEqual({ env: "prod" });
    }
    // A rolling restart of one node, while clients call through the load balancer.
    const [, pid = ""] = /Node 2 .*\(pid (\d+)\)/.exec(first.example.output()) ?? [];
    process.kill(Number(pid), "SIGTERM");
    const statuses = new Set<number>();
    while (!first.example.output().includes("node-2 ended, and runs again"))
      statuses.add((await callEcho(first.target)).status);
    expect([...statuses]).toEqual([200]);
    // PostgreSQL crashes and is started again; the counter of the example has what was acknowledged.
    const counter = "/agents/counter-agent/kitchen";
    expect((await sendRequest(first.target, "POST", `${counter}/rpc/increment`, [])).body.result).toBe(1);
    const [, postgres = ""] = await first.example.printed(/PostgreSQL .*\(pid (\d+)\)/);
    process.kill(Number(postgres), "SIGQUIT");
    await first.example.printed(/PostgreSQL ended, and runs again/);
    const read = () => sendRequest(first.target, "GET", counter);
    expect((await waitUntil(read, ({ status }) => status === 200)).body).toMatchObject({ count: 1 });
    await first.example.stop();
    expect(first.example.output()).toContain("stopping");
    for (const { url } of [first.target, ...first.nodes])
      await expect(fetch(url)).rejects.toThrow("fetch failed");

    const second = await start();
    expect((await sendRequest(second.target, "GET", path)).body.result.tags).toEqual({ env: "prod" });
    await second.example.stop();
  } finally {
    // A test that failed has not stopped them.
    for (const example of started) await example.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

/** `signalbox serve --processes 2`: two nodes behind one port, and their supervisor. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { runCliProcess } from "../support/server-process.ts";
import { isAlive, KeptConnection, metricIn, pidsOf, requestOnce } from "../support/processes.ts";

let cluster: TestCluster;
let service: ClusterNodeProcess;
beforeAll(async () => {
  // Long enough for a client that is slow to send its next request on a connection.
  cluster = await startTestCluster({ nodes: 0, file: { listener: { lameDuckMs: 2000 } } });
  service = await cluster.join({ name: "box", args: ["--processes", "2"], mayDie: true });
});
afterAll(() => cluster.stop());

/** A page may be a second old. */
const metric = async (name: string, process: string) =>
  metricIn((await requestOnce(service.url, "/metrics")).text, name, { process });
const readiness = async () => JSON.parse((await requestOnce(service.url, "/readyz")).text) as unknown;
const ALL_SERVE = {
  status: "ok",
  processes: [
    { process: 1, state: "serving" },
    { process: 2, state: "serving" },
  ],
};

it("prints one line with the address and the supervisor's pid, and commands find the service by the supervisor's folder", async () => {
  expect(service.pid).toBe(service.child.pid);
  expect(JSON.parse(readFileSync(join(service.dataDir, "server.json"), "utf8"))).toMatchObject({
    url: service.url,
    pid: service.pid,
  });
  const { stdout } = await runCliProcess(["cluster", "nodes", "--json", "--data-dir", service.dataDir], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
  });
  const names = (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name);
  expect(names.toSorted()).toEqual(["box-1", "box-2"]);
});

it("spreads connections over the processes, and one /metrics and one /readyz speak for all", async () => {
  for (let i = 0; i < 10; i++) expect((await requestOnce(service.url, "/healthz")).status).toBe(200);
  const { text } = await requestOnce(service.url, "/metrics");
  for (const process of ["1", "2"]) {
    const labels = { area: "operations", process, node: `box-${process}` };
    expect(metricIn(text, "signalbox_http_requests_total", labels)).toBeGreaterThanOrEqual(4);
    expect(metricIn(text, "signalbox_process_up", { process })).toBe(1);
    expect(metricIn(text, "signalbox_process_restarts_total", { process })).toBe(0);
  }
  const described = text.split("\n").filter((line) => line.startsWith("# HELP "));
  expect(new Set(described).size).toBe(described.length);
  expect(await readiness()).toEqual(ALL_SERVE);
});

it("a process that is killed is started again; the connection that was being handed to it is answered by another one", async () => {
  const [first = 0, second] = pidsOf(service.dataDir, 2);
  // It gets one connection, and does not confirm it.
  process.kill(first, "SIGSTOP");
  // Also if the test fails: nothing ends a process that is stopped.
  onTestFinished(() => {
    if (isAlive(first)) process.kill(first, "SIGKILL");
  });
  let answered = 0;
  const requests = Array.from({ length: 4 }, async () => {
    const answer = await requestOnce(service.url, "/healthz");
    answered += 1;
    return answer.status;
  });
  await expect.poll(() => answered).toBe(3);
  // Named, and not waited for.
  await expect.poll(() => metric("signalbox_process_up", "1")).toBe(0);
  expect((await requestOnce(service.url, "/readyz")).text).toContain("Not ready: process 1: does not answer");
  process.kill(first, "SIGKILL");
  expect(await Promise.all(requests)).toEqual([200, 200, 200, 200]);
  await expect.poll(readiness).toEqual(ALL_SERVE);
  const [again, kept] = pidsOf(service.dataDir, 2);
  expect(again).not.toBe(first);
  expect(kept).toBe(second);
  await expect.poll(() => metric("signalbox_process_restarts_total", "1")).toBe(1);
});

it("SIGHUP replaces one process after the other without a failed request, on new connections and on kept ones", async () => {
  const before = pidsOf(service.dataDir, 2);
  let isDone = false;
  const results: (number | string)[] = [];
  const readinesses: string[] = [];
  const repeat = async (request: () => Promise<unknown>) => {
    while (!isDone) await request().catch((error: unknown) => results.push(String(error)));
  };
  const keep = ({ status, text }: { status: number; text: string }) =>
    results.push(status === 200 ? status : text);
  const kept = Array.from({ length: 4 }, () => new KeptConnection(service.url));
  const clients = [
    ...kept.map((connection) => repeat(async () => keep(await connection.request("/accounts", ROOT_TOKEN)))),
    ...[1, 2].map(() => repeat(async () => keep(await requestOnce(service.url, "/accounts", ROOT_TOKEN)))),
    repeat(async () => readinesses.push((await requestOnce(service.url, "/readyz")).text)),
  ];
  service.child.kill("SIGHUP");
  await expect.poll(() => service.stderr()).toContain("all processes were replaced");
  isDone = true;
  await Promise.all(clients);
  for (const connection of kept) connection.close();
  expect(new Set(results)).toEqual(new Set([200]));
  expect(results.length).toBeGreaterThan(20);
  // A process that leaves does not count. On a machine that is short of time, /readyz may have other reasons.
  expect(readinesses.filter((text) => /stopping|no process/.test(text))).toEqual([]);
  for (const [index, pid] of pidsOf(service.dataDir, 2).entries()) expect(pid).not.toBe(before[index]);
});

it("SIGTERM stops all processes in order, and the supervisor ends with 0", async () => {
  const pids = pidsOf(service.dataDir, 2);
  expect(await service.end("SIGTERM")).toBe(0);
  expect(pids.map(isAlive)).toEqual([false, false]);
  expect(existsSync(join(service.dataDir, "server.json"))).toBe(false);
});

it("a configuration error of the first process ends all, with one line and its exit code", async () => {
  const { code, stderr } = await cluster.refused({
    args: ["--processes", "2"],
    env: { WEBHOOK_SECRET: "" },
  });
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^signalbox: WEBHOOK_SECRET: required/)]);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

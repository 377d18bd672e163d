/** Kills and failures of `signalbox serve --processes`, under load. */
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { isAlive, pidOf, pidsOf, requestOnce } from "../support/processes.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";

let cluster: TestCluster;
let service: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 0 });
  service = await cluster.join({ name: "box", args: ["--processes", "2"], mayDie: true });
});
afterAll(() => cluster.stop());

const states = async () =>
  (
    JSON.parse((await requestOnce(service.url, "/readyz")).text) as { processes?: { state: string }[] }
  ).processes?.map(({ state }) => state);
const bothServe = async () => {
  await expect.poll(() => states().catch(String)).toEqual(["serving", "serving"]);
};
/** A process that was killed exists until its parent has noticed. */
const isRunning = (pid: number) => !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
/** Sockets that the supervisor has open. */
const sockets = () =>
  readdirSync(`/proc/${service.pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${service.pid}/fd/${fd}`).startsWith("socket:");
    } catch {
      return false;
    }
  }).length;

it("kill -9 under a connection for each request: every request succeeds or fails at once, and the supervisor keeps no connection", async () => {
  await bothServe();
  const before = sockets();
  let isDone = false;
  const counts = { answered: 0, broken: 0, other: 0 };
  const clients = Array.from({ length: 16 }, async () => {
    while (!isDone) {
      await requestOnce(service.url, "/accounts", ROOT_TOKEN).then(
        ({ status }) => (status === 200 ? (counts.answered += 1) : (counts.other += 1)),
        () => (counts.broken += 1),
      );
    }
  });
  for (let round = 0; round < 6; round++) {
    const answered = counts.answered;
    await expect.poll(() => counts.answered).toBeGreaterThan(answered + 50);
    process.kill(pidsOf(service.dataDir, 2)[round % 2] as number, "SIGKILL");
    await bothServe();
  }
  isDone = true;
  // A request that nobody answers would keep its client for ever.
  await Promise.all(clients);
  expect(counts.other).toBe(0);
  expect(counts.answered).toBeGreaterThan(300);
  await expect.poll(sockets).toBe(before);
});

it("a process that cannot start anew ends the roll-over, the others go on, and it is back when it can", async () => {
  await bothServe();
  const second = pidOf(service.dataDir, 2);
  const config = join(service.dataDir, "cluster.json");
  const file = readFileSync(config, "utf8");
  writeFileSync(config, '{ "nonsense": true }');
  service.child.kill("SIGHUP");
  await expect.poll(() => service.stderr()).toContain("a process did not come back");
  for (let i = 0; i < 4; i++) expect((await requestOnce(service.url, "/healthz")).status).toBe(200);
  expect(pidOf(service.dataDir, 2)).toBe(second);
  writeFileSync(config, file);
  await bothServe();
  expect(pidOf(service.dataDir, 2)).toBe(second);
});

it("if all processes are killed, they come back on the same port", async () => {
  await bothServe();
  const before = pidsOf(service.dataDir, 2);
  for (const pid of before) process.kill(pid, "SIGKILL");
  await bothServe();
  for (const pid of pidsOf(service.dataDir, 2)) expect(before).not.toContain(pid);
});

it("connections that arrive while all processes die are answered or closed", async () => {
  await bothServe();
  const pids = pidsOf(service.dataDir, 2);
  // It learns of the connections and of the deaths at the same time.
  process.kill(service.pid, "SIGSTOP");
  const requests = Array.from({ length: 40 }, () => requestOnce(service.url, "/healthz"));
  for (const pid of pids) process.kill(pid, "SIGKILL");
  await expect.poll(() => pids.map(isRunning)).toEqual([false, false]);
  process.kill(service.pid, "SIGCONT");
  await Promise.allSettled(requests);
});

it("if the supervisor is killed, its processes stop in order and none stays", async () => {
  await bothServe();
  const pids = pidsOf(service.dataDir, 2);
  await service.kill();
  await expect.poll(() => pids.map(isAlive)).toEqual([false, false]);
  for (const k of [1, 2])
    expect(readdirSync(join(service.dataDir, `process-${k}`))).not.toContain("server.json");
  // The folder can be used again.
  const again = await cluster.join({ name: "box", dataDir: service.dataDir, args: ["--processes", "2"] });
  expect(await again.end("SIGTERM")).toBe(0);
});

/** Nodes of a cluster: whatever happens to one of them, all work that they have accepted is done in the end, and nobody has to ask for it. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  CLUSTER_ENVIRONMENT,
  type ClusterNodeProcess,
  startTestCluster,
  type TestCluster,
} from "../support/cluster.ts";
import { openSmallDisk } from "../support/small-disk.ts";
import { WORK_KINDS, type WorkKind, WorkOracle } from "../support/work-oracle.ts";

const PROGRAM = join(import.meta.dirname, "../worker/programs/work/src/server.ts");
const AGENTS = join(import.meta.dirname, "../fixtures/working-agents.ts");
const SECRET = CLUSTER_ENVIRONMENT["WEBHOOK_SECRET"] ?? "";
/** Long enough that the fault comes first. */
const SOON_MS = 4000;

let oracle: WorkOracle;
let cluster: TestCluster;
beforeEach(async () => {
  oracle = await WorkOracle.open();
  cluster = await startTestCluster({
    nodes: 2,
    file: {
      agents: { access: "worker", modules: [AGENTS], idleTimeoutMs: 2000 },
      webhooks: {
        answerWithinMs: 3000,
        sources: { tasks: { scheme: "generic", agent: "tasker", secretVariable: "WEBHOOK_SECRET" } },
      },
    },
    args: ["--worker", PROGRAM],
    env: { ORACLE_URL: oracle.url },
  });
});
afterEach(async () => {
  oracle.close();
  await cluster.stop();
});

const give = (node: { readonly url: string }, kind: WorkKind, instance?: string) =>
  oracle.start(node, kind, SOON_MS, SECRET, instance);
/** A node that may die is taken for dead, and refuses work for a moment, if the machine is busy enough. */
const giveInTheEnd = async (node: ClusterNodeProcess, kind: WorkKind) => {
  while (!(await give(node, kind))) await sleep(200);
};
/** Work of each kind at each node: about a third of the instances run on each of them. */
const giveAll = (nodes: readonly ClusterNodeProcess[]) =>
  Promise.all(
    nodes.flatMap((node) =>
      WORK_KINDS.flatMap((kind) => Array.from({ length: 4 }, () => giveInTheEnd(node, kind))),
    ),
  );

it("after a node was killed", async () => {
  const victim = await cluster.join({ name: "victim", mayDie: true });
  await giveAll(cluster.nodes);
  await victim.end("SIGKILL");
  await oracle.wait();
});

it("after a node was stopped", async () => {
  const leaving = await cluster.join({ name: "leaving", mayDie: true });
  await giveAll(cluster.nodes);
  await leaving.end("SIGTERM");
  await oracle.wait();
});

it("after instances were fenced at nodes that stay alive", async () => {
  const client = new Client({ connectionString: cluster.postgres.url });
  await client.connect();
  await giveAll(cluster.nodes);
  // PostgreSQL takes no record of an instance; everything else goes on.
  await client.query("BEGIN");
  await client.query("LOCK TABLE agent_log IN ACCESS EXCLUSIVE MODE");
  // Calls that write are answered when their instances have given up. By then all work that became due has been cut off.
  const refused = await Promise.all(cluster.nodes.map((node) => give(node, "queue")));
  expect(refused).not.toContain(true);
  await client.query("COMMIT");
  await client.end();
  await oracle.wait();
});

it("after the disk of a node was full", async () => {
  oracle.patienceMs = 20_000;
  const disk = await openSmallDisk(64);
  try {
    const small = await cluster.join({
      name: "small",
      dataDir: `${disk.folder}/data`,
      through: disk.through,
    });
    let isOver = false;
    let refused = 0;
    const load = async (kind: WorkKind, instance?: string) => {
      while (!isOver) {
        if (!(await give(small, kind, instance))) refused += 1;
        await sleep(instance === undefined ? 200 : 20);
      }
    };
    const names = Array.from({ length: 6 }, (_, i) => `w${i}`);
    const loads = [
      ...names.map((name) => load("queue", name)),
      load("schedule"),
      load("alarm"),
      load("workflow"),
      load("delivery"),
    ];
    for (let round = 0; round < 4; round += 1) {
      const before = refused;
      await disk.fill(round * 16);
      await expect.poll(() => refused, { interval: 20 }).toBeGreaterThan(before + round);
      await disk.makeRoom();
      const { queue, workflow } = oracle.accepted;
      await expect.poll(() => oracle.accepted.queue, { interval: 20 }).toBeGreaterThan(queue + 5);
      await expect.poll(() => oracle.accepted.workflow, { interval: 20 }).toBeGreaterThan(workflow);
      oracle.release();
    }
    isOver = true;
    oracle.releaseAll();
    await Promise.all(loads);
    await oracle.wait();
    await small.kill();
  } finally {
    await disk.drop();
  }
});

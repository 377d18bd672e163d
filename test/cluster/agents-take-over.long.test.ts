/** An instance of a cluster runs on one node, and another one takes it over when its node is killed, paused or stopped. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { type Answer, codeOf } from "../support/send-request.ts";
import { runCliProcess } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const MODULE = join(import.meta.dirname, "../fixtures/moving-agent.ts");
const CLOCK = pathToFileURL(join(import.meta.dirname, "../support/clock-preload.ts")).href;

let cluster: TestCluster;
let left: ClusterNodeProcess;
let right: ClusterNodeProcess;

beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, args: ["--agents", MODULE] });
  [left, right] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
});
afterAll(() => cluster.stop());

/** Part of the names of instances, so that a second try of a test begins with new ones. */
let attempt = 0;
beforeEach(() => {
  attempt += 1;
});
/** Also after a test that failed: the next one starts a node of the same name. */
afterEach(() => Promise.all(cluster.nodes.slice(2).map((node) => node.kill())));

const call = (node: ClusterNodeProcess, name: string, method: string, ...args: unknown[]): Promise<Answer> =>
  node.api("POST", `/agents/moving-agent/${name}/rpc/${method}`, args);

/** As a client does that is told to try again: at the same node or at the next one. */
const insist = async (
  at: ClusterNodeProcess | readonly ClusterNodeProcess[],
  name: string,
  method: string,
  ...args: unknown[]
): Promise<unknown> => {
  const nodes = [at].flat();
  let tries = 0;
  const next = () => nodes[tries++ % nodes.length] ?? left;
  const { status, body } = await waitUntil(
    () => call(next(), name, method, ...args),
    (answer) => answer.status !== 503,
    20,
  );
  expect(status).toBe(200);
  return body.result as unknown;
};

/** Creates the instance, and moves it to the node. */
async function place(name: string, node: ClusterNodeProcess): Promise<void> {
  await insist(left, name, "read");
  const path = `/accounts/default/agents/moving-agent/instances/${name}/move`;
  await waitUntil(
    () => left.api("POST", path, { to: node.name }),
    ({ status }) => status === 200,
    20,
  );
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

it("another node takes over the instances of a killed one, with everything that was acknowledged", async () => {
  const third = await cluster.join({ name: "node-3", mayDie: true });
  await place("killed", third);
  for (let i = 1; i <= 20; i++) expect(await insist(third, "killed", "add")).toBe(i);
  await third.kill();
  expect(await insist([left, right], "killed", "add")).toBe(21);
  expect(await insist([left, right], "killed", "read")).toEqual({ count: 21, rang: 0, steps: upTo(21) });
  // Any node lists the node that was lost, and the take-over, whichever node has made it.
  for (const node of [left, right]) {
    // The nodes notice it one after the other.
    await expect
      .poll(async () => (await node.api("GET", "/cluster")).body.result.lost_nodes)
      .toMatchObject([{ name: "node-3" }]);
    const { body } = await waitUntil(
      () => node.api("GET", "/cluster/nodes"),
      (answer) => answer.body.result.every(({ agents }: { agents: object | null }) => agents !== null),
    );
    expect(body.result.map(({ name, problems }: Reported) => [name, problems])).toEqual([
      ["node-1", []],
      ["node-2", []],
    ]);
    const takeOvers = body.result.flatMap(({ agents }: Reported) => agents.recent_take_overs);
    expect(takeOvers).toMatchObject([
      { account: "default", agent: "moving-agent", name: "killed", from: "node-3" },
    ]);
  }
  const list = await runCliProcess(["cluster", "nodes", "--url", left.url], {
    env: { SIGNALBOX_TOKEN: ROOT_TOKEN },
  });
  expect(list.stdout).toMatch(/node-3 .* dead /);
});

interface Reported {
  readonly name: string;
  readonly problems: readonly string[];
  readonly agents: { readonly recent_take_overs: readonly object[] };
}

it("due work of a killed node runs although nobody asks", async () => {
  // Its clock is an hour behind: what is due in half an hour there is due for the others, and cannot run before the kill.
  const env = { NODE_OPTIONS: `--import=${CLOCK}`, SIGNALBOX_TEST_CLOCK_MS: String(-3_600_000) };
  const third = await cluster.join({ name: "node-3", mayDie: true, env });
  const names = Array.from({ length: 12 }, (_, i) => `due-${attempt}-${i}`);
  const runByOthers = async () => (await schedulesRun(left)) + (await schedulesRun(right));
  const before = await runByOthers();
  for (const name of names) await place(name, third);
  for (const name of names) await insist(third, name, "ringAfter", 1800);
  await third.kill();
  await waitUntil(runByOthers, (run) => run - before >= names.length, 100);
  for (const name of names) expect(await insist([left, right], name, "read")).toMatchObject({ rang: 1 });
});

async function schedulesRun(node: ClusterNodeProcess): Promise<number> {
  const { text } = await node.api("GET", "/metrics");
  const lines = text
    .split("\n")
    .filter((line) => /^signalbox_agent_turns_total\{.*kind="schedule"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

it("a paused owner neither writes nor answers when it wakes, and gets the instance back only by a claim", async () => {
  const third = await cluster.join({ name: "node-3", mayDie: true });
  const paused = `paused-${attempt}`;
  await place(paused, third);
  for (let i = 1; i <= 5; i++) expect(await insist(third, paused, "add")).toBe(i);
  // Under way when the pause begins, and another request that arrives during it.
  const mayGoOn = join(third.dataDir, "may-go-on");
  const slow = call(third, paused, "addWhen", mayGoOn);
  await expect.poll(() => third.stderr()).toContain("addWhen waits");
  process.kill(third.pid, "SIGSTOP");
  const late = call(third, paused, "add");
  expect(await insist([left, right], paused, "add")).toBe(6);
  await writeFile(mayGoOn, "");
  process.kill(third.pid, "SIGCONT");
  const answers = await Promise.all([slow, late]);
  const refused = answers.filter(({ status }) => status === 503);
  // What may have been carried out is not to be repeated.
  for (const answer of refused)
    expect(answer.headers.get("retry-after") === null).toBe(codeOf(answer) === 3012);
  const acknowledged = answers.length - refused.length;
  expect((await slow).status).toBe(503);
  const result = (await insist([left, right], paused, "read")) as { count: number; steps: number[] };
  expect(result.count).toBe(6 + acknowledged);
  expect(result.steps).toEqual(upTo(6 + acknowledged));
  await third.kill();
});

it("a node that is stopped hands its instances over, without an error", async () => {
  const third = await cluster.join({ name: "node-3", mayDie: true });
  const names = Array.from({ length: 30 }, (_, i) => `stopped-${attempt}-${i}`);
  const busy = names[7] ?? "";
  for (const name of names) await place(name, third);
  for (const name of names) await insist(third, name, "add");
  const slow = call(third, busy, "addAfter", 500);
  await expect.poll(() => third.stderr()).toContain("addAfter waits for 500 ms");
  expect(await third.end("SIGTERM")).toBe(0);
  expect((await slow).status).toBe(200);
  for (const name of names) {
    const result = await insist([left, right], name, "read");
    expect(result).toMatchObject({ count: name === busy ? 2 : 1 });
  }
  expect(third.stderr()).not.toMatch(/"level":"(error|fatal)"/);
});

it("a node with an empty disk has the instances as they were", async () => {
  const third = await cluster.join({ name: "node-3", mayDie: true });
  const restored = `restored-${attempt}`;
  await place(restored, third);
  for (let i = 1; i <= 300; i++) await insist(third, restored, "add");
  await third.kill();
  await rm(join(third.dataDir, "agent-cache"), { recursive: true });
  const again = await cluster.join({ name: "node-3", mayDie: true, dataDir: third.dataDir });
  expect(await insist([again, left, right], restored, "read")).toEqual({
    count: 300,
    rang: 0,
    steps: upTo(300),
  });
  await again.kill();
});

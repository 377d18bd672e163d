/**
 * Rolling restarts: three nodes behind a load balancer are stopped and started one after the other, as in an upgrade, while clients call. No
 * client may notice.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  startHaproxy,
  type HaproxyOptions,
  type RunningBalancer,
} from "../../../examples/cluster/haproxy.ts";
import { CLUSTER_ENVIRONMENT } from "../../support/cluster.ts";
import { freePort } from "../../support/free-port.ts";
import { createRandom } from "../../support/ledger/random.ts";
import { ROOT_TOKEN } from "../../support/root-token.ts";
import { openTestPostgres } from "../../support/test-postgres.ts";
import { ChaosNode } from "../cluster/chaos-node.ts";
import { History } from "../history.ts";
import { Isolation } from "../cluster/isolation.ts";
import type { LoadTarget } from "../cluster/load-target.ts";
import { MemberWatch } from "../cluster/member-watch.ts";
import { ReadinessRecord } from "../cluster/readiness-record.ts";
import { Disturbance } from "../disturbance.ts";
import { AgentsLoad, agentsConfig, agentsEnvironment } from "../load/agents/agents-load.ts";
import { callMethod } from "../load/agents/method-caller.ts";
import type { LoadContext } from "../load/workload.ts";
import { allReady } from "../readiness.ts";
import { startNginx } from "./nginx.ts";

export interface RollOptions {
  readonly rolls: number;
  readonly balancer: "haproxy" | "nginx";
  readonly onProgress?: (text: string) => void;
  /** Ends the run after the current restart. What happened until then is checked. */
  readonly signal?: AbortSignal;
}

const BALANCERS: Readonly<
  Record<RollOptions["balancer"], (options: HaproxyOptions) => Promise<RunningBalancer>>
> = { haproxy: startHaproxy, nginx: startNginx };
const NODES = 3;
/** The default: longer than two checks of the load balancer, also on a busy machine. */
const LAME_DUCK_MS = 5000;
const READY_MS = 60_000;
const MAX_PAUSE_MS = 20;
const AGENTS = { entities: 12, senders: 4, callers: 3, watchers: 18, maxPauseMs: MAX_PAUSE_MS } as const;
const SEED = 15;

interface Call {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly authorization: string;
  readonly body?: object;
  readonly accept?: string;
}

const INSTANCE = "/accounts/default/agents/chain/instances/entity-0";

const CALLS: readonly Call[] = [
  {
    name: "gateway calls",
    method: "POST",
    path: "/v1/default/default/echo/chat/completions",
    authorization: "Bearer key-of-a-provider",
    body: { model: "echo", messages: [{ role: "user", content: "hello" }] },
  },
  {
    name: "streams",
    method: "POST",
    path: "/v1/default/default/echo/chat/completions",
    authorization: "Bearer key-of-a-provider",
    body: { model: "echo", stream: true, messages: [{ role: "user", content: "hello ".repeat(50) }] },
  },
  {
    name: "tag writes",
    method: "PUT",
    path: "/accounts/default/tags",
    authorization: `Bearer ${ROOT_TOKEN}`,
    body: { resource_type: "worker", resource_id: "rolled", tags: { env: "prod" } },
  },
  {
    name: "tag reads",
    method: "GET",
    path: "/accounts/default/tags?resource_type=worker&resource_id=rolled",
    authorization: `Bearer ${ROOT_TOKEN}`,
  },
  // They run at the owner of the instance.
  {
    name: "instance reads",
    method: "GET",
    path: INSTANCE,
    authorization: `Bearer ${ROOT_TOKEN}`,
  },
  // It ends when its node stops, and is opened again. It goes on when its instance moves.
  {
    name: "tails",
    method: "GET",
    path: `${INSTANCE}/events`,
    authorization: `Bearer ${ROOT_TOKEN}`,
    accept: "text/event-stream",
  },
];

export async function runRolls({ rolls, balancer: kind, onProgress, signal }: RollOptions): Promise<History> {
  const history = new History((text) => onProgress?.(`violation: ${text}`));
  const folder = await mkdtemp(join(tmpdir(), "signalbox-rolls-"));
  const config = join(folder, "config.json");
  await writeFile(config, JSON.stringify({ ...agentsConfig, listener: { lameDuckMs: LAME_DUCK_MS } }));
  const postgres = await openTestPostgres();
  const ports = await Promise.all(Array.from({ length: NODES }, () => freePort()));
  const nodes = ports.map(
    (port, i) =>
      new ChaosNode({
        name: `node-${i + 1}`,
        args: [
          "--port",
          String(port),
          "--data-dir",
          join(folder, `node-${i + 1}`),
          "--config",
          config,
        ].concat(["--database-url", postgres.url]),
        env: { ...CLUSTER_ENVIRONMENT, ...agentsEnvironment },
        redirects: {},
        onExit: (name, reason) => history.violation(`${name} ended by itself: ${reason}`),
      }),
  );
  const stop = new AbortController();
  let balancer: RunningBalancer | null = null;
  try {
    for (const node of nodes) await node.start();
    await allReady(nodes, READY_MS);
    balancer = await BALANCERS[kind]({ port: await freePort(), nodes: ports, folder });
    const { url } = balancer;
    // The first write, so that all reads find something.
    await call(history, url, CALLS[2] as Call, new Agent(), stop.signal);
    await callMethod(balancerTarget(kind, url), "entity-0", "read", []);
    const context = undisturbed(history, [balancerTarget(kind, url)], postgres.url, stop.signal);
    const agents = new AgentsLoad(context, AGENTS, { ...context, nodes });
    const clients = CALLS.flatMap((each) => [
      // One client keeps its connection, the other one opens one for each request.
      client(history, url, each, new Agent({ keepAlive: true, maxSockets: 1 }), stop.signal),
      client(history, url, each, new Agent({ keepAlive: false }), stop.signal),
    ]);
    clients.push(...agents.clients());
    for (let roll = 1; roll <= rolls; roll++) {
      for (const node of nodes) if (signal?.aborted !== true) await restart(node, nodes, history);
      if (signal?.aborted === true) break;
      history.count("rolls");
      onProgress?.(
        `roll ${roll} of ${rolls}: ${history.counted("answered")} answers, ${history.violations} failures`,
      );
    }
    stop.abort();
    await Promise.all(clients);
    await agents.settle();
    return history;
  } finally {
    stop.abort();
    await balancer?.stop();
    for (const node of nodes) await node.kill();
    await postgres.drop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Clients do not know that nodes are restarted: no request may be refused or broken. */
function undisturbed(
  history: History,
  nodes: readonly LoadTarget[],
  postgresUrl: string,
  signal: AbortSignal,
): LoadContext {
  return {
    nodes,
    members: new MemberWatch(postgresUrl),
    disturbance: new Disturbance(),
    history,
    random: createRandom(SEED),
    maxStaleMs: Infinity,
    signal,
  };
}

const balancerTarget = (name: string, url: string): LoadTarget => ({
  name,
  url,
  isolation: new Isolation(),
  readiness: new ReadinessRecord(),
  clockStepMs: 0,
  kills: [],
  mayHaveBrokenSince: () => false,
});

async function restart(node: ChaosNode, nodes: readonly ChaosNode[], history: History): Promise<void> {
  history.fault(`${node.name} stops`);
  const code = await node.terminate();
  if (code !== 0) history.violation(`${node.name} ended with ${code}`);
  history.count("restarts");
  history.fault(`${node.name} starts`);
  await node.start();
  if ((await allReady(nodes, READY_MS)) === null) history.violation("a node did not become ready");
}

async function client(
  history: History,
  url: string,
  each: Call,
  agent: Agent,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await call(history, url, each, agent, signal);
    await sleep(Math.random() * MAX_PAUSE_MS);
  }
  agent.destroy();
}

async function call(
  history: History,
  url: string,
  each: Call,
  agent: Agent,
  signal: AbortSignal,
): Promise<void> {
  const { hostname, port } = new URL(url);
  const startedAt = performance.now();
  const lasted = () => `after ${Math.round(performance.now() - startedAt)} ms`;
  try {
    const request = httpRequest({
      hostname,
      port,
      agent,
      method: each.method,
      path: each.path,
      headers: {
        authorization: each.authorization,
        "content-type": "application/json",
        accept: each.accept ?? "*/*",
      },
      // A tail has no end of its own.
      ...(each.accept === undefined ? {} : { signal }),
    });
    request.end(each.body === undefined ? undefined : JSON.stringify(each.body));
    const [response] = (await once(request, "response")) as [IncomingMessage];
    let text = "";
    for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
    if (response.statusCode !== 200 || (each.name === "streams" && !text.includes("[DONE]")))
      history.violation(`${each.name}: ${response.statusCode} ${lasted()}: ${text.slice(0, 200)}`);
    history.count(each.name);
    history.count("answered");
  } catch (error) {
    if (each.accept !== undefined && signal.aborted) return;
    history.violation(`${each.name}: ${String(error)} ${lasted()}`);
  }
}

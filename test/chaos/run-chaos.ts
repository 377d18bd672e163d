/** One run: a cluster, its load, and faults according to a plan. The result says what happened and which rules were broken. */
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../support/ledger/random.ts";
import { ChaosCluster } from "./cluster/chaos-cluster.ts";
import { MemberWatch } from "./cluster/member-watch.ts";
import { Disturbance } from "./disturbance.ts";
import { describeFault, inject } from "./faults.ts";
import { describeTotals, totalsOf } from "./goal.ts";
import { History } from "./history.ts";
import {
  AgentsLoad,
  agentsConfig,
  agentsEnvironment,
  type AgentsLoadOptions,
} from "./load/agents/agents-load.ts";
import { CallLoad } from "./load/call-load.ts";
import { CallRecord } from "./load/call-record.ts";
import { LimitLoad } from "./load/limit-load.ts";
import { type CountingProvider, providerConfig, startCountingProvider } from "./load/provider.ts";
import { ObjectsLoad, objectsConfig } from "./load/objects/objects-load.ts";
import { WorkLoad } from "./load/objects/work-load.ts";
import { TagLoad } from "./load/tag-load.ts";
import { TokenLoad } from "./load/token-load.ts";
import type { LoadContext, Workload } from "./load/workload.ts";
import type { Step } from "./plan.ts";
import { allReady, watchReadiness } from "./readiness.ts";

export interface ChaosOptions {
  readonly seed: number;
  readonly plan: Iterable<Step>;
  /** `cluster.maxStaleMs` of the nodes: how long they answer without PostgreSQL. */
  readonly maxStaleMs: number;
  /** Default: both. */
  readonly load?: LoadKind;
  readonly onProgress?: (text: string) => void;
  /** Ends the run before the end of the plan. What happened until then is checked. */
  readonly signal?: AbortSignal;
  /** Asked before each step; true ends the run as the signal does. */
  readonly isEnough?: (history: History) => boolean;
}

export const LOAD_KINDS = ["gateway", "agents", "both"] as const;
export type LoadKind = (typeof LOAD_KINDS)[number];

/** With the load of the gateway, on few cores. */
const AGENTS_BESIDE: AgentsLoadOptions = {
  entities: 12,
  senders: 4,
  callers: 3,
  watchers: 12,
  maxPauseMs: 30,
};
const AGENTS_ALONE: AgentsLoadOptions = {
  entities: 60,
  senders: 64,
  callers: 16,
  watchers: 60,
  maxPauseMs: 0,
};

const OBJECT_CALLERS = 4;

/** What nodes log that explains a violation. */
const TOLD = ["declared dead", "storage failed", "call log: "];
/** What no node may log: the server of a run keeps every commit. */
const ALARMS = ['"level":"fatal"', "lost acknowledged"];
export const NODES = Number(process.env["CHAOS_NODES"] ?? 3);
/** After a fault; a node that is not ready again by then is a violation. Nodes need some seconds, and a busy machine several times as many. */
const RECOVERY_MS = 30_000;
/** Load before the first fault and after the last one. */
const QUIET_MS = 1500;
const PROGRESS_MS = 60_000;
const MAX_WARM_UP_MS = 120_000;

export async function runChaos({
  seed,
  plan,
  maxStaleMs,
  load = "both",
  onProgress,
  signal,
  isEnough,
}: ChaosOptions): Promise<History> {
  const history = new History((text) => onProgress?.(`violation: ${text}`));
  const provider = await startCountingProvider();
  const cluster = await ChaosCluster.start({
    nodes: NODES,
    file: {
      ...providerConfig(provider.peer.url),
      ...agentsConfig,
      agents: { ...agentsConfig.agents, ...objectsConfig },
      cluster: { maxStaleMs },
      listener: { lameDuckMs: 0 },
    },
    env: agentsEnvironment,
    onExit: (name, reason) => history.violation(`${name} ended by itself: ${reason}`),
  });
  const progress = setInterval(() => onProgress?.(describeTotals(totalsOf(history))), PROGRESS_MS);
  const stop = new AbortController();
  /** The watches go on until the last client has ended, because clients ask them. */
  const stopWatching = new AbortController();
  try {
    const members = new MemberWatch(cluster.database.observerUrl);
    const disturbance = new Disturbance();
    const context: LoadContext = {
      nodes: cluster.nodes,
      members,
      disturbance,
      history,
      random: createRandom(seed + 1),
      maxStaleMs,
      signal: stop.signal,
    };
    const workloads = createWorkloads(context, provider, load);
    for (const workload of workloads) await workload.prepare();
    const watching = cluster.nodes.map((node) => watchReadiness(node, stopWatching.signal));
    watching.push(members.run(stopWatching.signal));
    const running = workloads.flatMap((workload) => workload.clients());
    await warmUp(history, workloads);
    for (const step of plan) {
      if (signal?.aborted === true || isEnough?.(history) === true) break;
      const [first] = step;
      await sleep(first?.afterMs ?? 0);
      for (const fault of step) {
        history.fault(describeFault(fault));
        history.count(`fault: ${fault.kind}`);
        history.count("faults");
        onProgress?.(describeFault(fault));
      }
      disturbance.begin();
      const injected = await Promise.allSettled(step.map((fault) => inject(cluster, fault)));
      const failed = injected.find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") {
        history.violation(`a fault did not end: ${String(failed.reason).slice(0, 1000)}`);
        break;
      }
      const recoveryMs = await allReady(cluster.nodes, RECOVERY_MS);
      disturbance.end();
      if (recoveryMs === null) history.violation("a node did not become ready again");
      else history.max("longest recovery, ms", recoveryMs);
    }
    await sleep(QUIET_MS);
    stop.abort();
    await Promise.all(running);
    stopWatching.abort();
    await Promise.all(watching);
    for (const workload of workloads) await workload.settle();
    for (const name of workloads.flatMap(({ needed }) => needed)) {
      if (history.counted(name) === 0) history.violation(`the run tested nothing: "${name}" is 0`);
    }
    for (const node of cluster.nodes) history.count("starts that were repeated", node.failedStarts);
    for (const node of cluster.nodes)
      for (const line of node.logged(TOLD)) history.note(`${node.name}: ${line.slice(0, 2000)}`);
    for (const node of cluster.nodes)
      for (const line of node.logged(ALARMS)) history.violation(`${node.name} logged: ${line.slice(0, 300)}`);
    return history;
  } finally {
    clearInterval(progress);
    stop.abort();
    stopWatching.abort();
    await cluster.stop();
    await provider.peer.close();
  }
}

/** Each rule is checked before the first fault; a run that cannot do even this says so at its end. */
async function warmUp(history: History, workloads: readonly Workload[]): Promise<void> {
  const deadline = performance.now() + MAX_WARM_UP_MS;
  const names = workloads.flatMap((workload) => workload.warmUp);
  await sleep(QUIET_MS);
  while (names.some((name) => history.counted(name) === 0) && performance.now() < deadline) await sleep(100);
}

/** A further kind of load is added here. */
function createWorkloads(context: LoadContext, provider: CountingProvider, load: LoadKind): Workload[] {
  const record = new CallRecord(context);
  const agents = new AgentsLoad(context, load === "agents" ? AGENTS_ALONE : AGENTS_BESIDE);
  const gateway = [
    new LimitLoad(context, provider, record),
    new TagLoad(context),
    new TokenLoad(context),
    // Last: it reads the log of the calls of all others.
    new CallLoad(context, provider, record),
  ];
  const objects = new ObjectsLoad(context, load === "agents" ? OBJECT_CALLERS : 1);
  return [
    ...(load === "agents" ? [] : gateway),
    ...(load === "gateway" ? [] : [agents, objects, new WorkLoad(context)]),
  ];
}

/** The faults of a run. Each one resolves when it is over; nodes may need time afterwards until they are ready. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ChaosCluster } from "./cluster/chaos-cluster.ts";
import type { ChaosNode } from "./cluster/chaos-node.ts";
import { FAKETIME_IS_MISSING } from "./cluster/fake-clock.ts";

export const FAULT_KINDS = [
  "kill",
  "pause",
  "cut from PostgreSQL",
  "black hole to PostgreSQL",
  "black hole from PostgreSQL",
  "slow PostgreSQL",
  "cut from peers",
  "black hole to peers",
  "black hole from peers",
  "reset of all connections",
  "PostgreSQL restarts",
  "PostgreSQL is shut down immediately",
  "PostgreSQL crashes",
  "PostgreSQL hangs",
  "PostgreSQL ends sessions",
  "PostgreSQL fails over",
  "full disk",
  "clock is set",
] as const;

/** More than the difference that a node reports, and less than the run waits for late schedules. */
const CLOCK_STEP_S = 7;

export type FaultKind = (typeof FAULT_KINDS)[number];

export interface PlannedFault {
  readonly kind: FaultKind;
  /** Index of the node; ignored by faults of PostgreSQL. */
  readonly node: number;
  readonly durationMs: number;
  /** Quiet time before the fault. */
  readonly afterMs: number;
}

type Inject = (cluster: ChaosCluster, fault: PlannedFault) => Promise<void>;

const FAULTS: Readonly<Record<FaultKind, Inject>> = {
  kill: async (cluster, fault) => {
    const node = nodeOf(cluster, fault);
    await node.kill();
    await sleep(fault.durationMs);
    await node.startAgain();
  },
  pause: (cluster, fault) =>
    isolated([nodeOf(cluster, fault)], async () => {
      const node = nodeOf(cluster, fault);
      node.pause();
      await sleep(fault.durationMs);
      node.resume();
    }),
  "cut from PostgreSQL": (cluster, fault) =>
    isolated([nodeOf(cluster, fault)], async () => {
      const proxy = cluster.database.proxies[fault.node];
      proxy?.cut();
      await sleep(fault.durationMs);
      proxy?.heal();
    }),
  "black hole to PostgreSQL": (cluster, fault) => blackHole(cluster, fault, "up"),
  "black hole from PostgreSQL": (cluster, fault) => blackHole(cluster, fault, "down"),
  "slow PostgreSQL": async (cluster, fault) => {
    const proxy = cluster.database.proxies[fault.node];
    proxy?.delay(50);
    await sleep(fault.durationMs);
    proxy?.heal();
  },
  "cut from peers": async (cluster, fault) => {
    for (const proxy of cluster.linksOf(fault.node)) proxy.cut();
    await sleep(fault.durationMs);
    for (const proxy of cluster.linksOf(fault.node)) proxy.heal();
  },
  // Connections stay open, and what one side sends does not arrive.
  "black hole to peers": (cluster, fault) => holdLinks(cluster, fault, "out"),
  "black hole from peers": (cluster, fault) => holdLinks(cluster, fault, "in"),
  "reset of all connections": async (cluster, fault) => {
    for (const proxy of [cluster.database.proxies[fault.node], ...cluster.linksOf(fault.node)])
      proxy?.reset();
  },
  "PostgreSQL restarts": (cluster, fault) => withoutPostgres(cluster, fault, "fast"),
  "PostgreSQL is shut down immediately": (cluster, fault) => withoutPostgres(cluster, fault, "immediate"),
  "PostgreSQL crashes": (cluster, fault) => withoutPostgres(cluster, fault, "kill"),
  "PostgreSQL hangs": (cluster, fault) =>
    isolated(cluster.nodes, async () => {
      await cluster.database.primary.freeze();
      await sleep(fault.durationMs);
      await cluster.database.primary.thaw();
    }),
  "PostgreSQL ends sessions": async (cluster) => cluster.database.endSessions(),
  "PostgreSQL fails over": (cluster, fault) =>
    isolated(cluster.nodes, () => cluster.database.failOver(fault.durationMs)),
  "full disk": async (cluster, fault) => {
    const { disk } = nodeOf(cluster, fault);
    await disk?.fill();
    await sleep(fault.durationMs);
    await disk?.makeRoom();
  },
  "clock is set": async (cluster, fault) => {
    const clock = cluster.nodes.at(-1)?.clock;
    if (clock === undefined || clock === null) throw new Error(FAKETIME_IS_MISSING);
    await clock.set(fault.durationMs % 2 === 0 ? CLOCK_STEP_S : -CLOCK_STEP_S);
    await sleep(fault.durationMs);
    await clock.set(0);
  },
};

export function inject(cluster: ChaosCluster, fault: PlannedFault): Promise<void> {
  return FAULTS[fault.kind](cluster, fault);
}

export function describeFault({ kind, node, durationMs }: PlannedFault): string {
  const hasNoNode = kind.startsWith("PostgreSQL") || kind === "clock is set";
  return `${hasNoNode ? "" : `node-${node + 1}: `}${kind}, ${durationMs} ms`;
}

function nodeOf(cluster: ChaosCluster, { node }: PlannedFault): ChaosNode {
  const found = cluster.nodes[node];
  if (found === undefined) throw new Error(`there is no node ${node}`);
  return found;
}

async function isolated(nodes: readonly ChaosNode[], work: () => Promise<void>): Promise<void> {
  for (const node of nodes) node.isolation.begin();
  await work();
  for (const node of nodes) node.isolation.end();
}

function blackHole(cluster: ChaosCluster, fault: PlannedFault, direction: "up" | "down"): Promise<void> {
  return isolated([nodeOf(cluster, fault)], async () => {
    const proxy = cluster.database.proxies[fault.node];
    proxy?.hold(direction);
    await sleep(fault.durationMs);
    proxy?.heal();
  });
}

async function holdLinks(
  cluster: ChaosCluster,
  { node, durationMs }: PlannedFault,
  way: "in" | "out",
): Promise<void> {
  const dialled = (cluster.links[node] ?? []).filter((proxy) => proxy !== undefined);
  const accepted = cluster.linksOf(node).filter((proxy) => !dialled.includes(proxy));
  for (const proxy of dialled) proxy.hold(way === "out" ? "up" : "down");
  for (const proxy of accepted) proxy.hold(way === "out" ? "down" : "up");
  await sleep(durationMs);
  for (const proxy of [...dialled, ...accepted]) proxy.heal();
}

function withoutPostgres(
  cluster: ChaosCluster,
  { durationMs }: PlannedFault,
  how: "fast" | "immediate" | "kill",
): Promise<void> {
  return isolated(cluster.nodes, async () => {
    await cluster.database.primary.stop(how);
    await sleep(durationMs);
    await cluster.database.primary.start();
  });
}

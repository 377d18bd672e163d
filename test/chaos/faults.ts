/** The faults of a run. Each one resolves when it is over; nodes may need time afterwards until they are ready. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ChaosCluster } from "./cluster/chaos-cluster.ts";
import type { ChaosNode } from "./cluster/chaos-node.ts";

export const FAULT_KINDS = [
  "kill",
  "pause",
  "cut from PostgreSQL",
  "black hole to PostgreSQL",
  "black hole from PostgreSQL",
  "slow PostgreSQL",
  "cut from peers",
  "black hole from peers",
  "reset of all connections",
  "PostgreSQL restarts",
  "PostgreSQL is shut down immediately",
  "PostgreSQL crashes",
  "PostgreSQL hangs",
] as const;

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
    await node.start();
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
      const proxy = cluster.toPostgres[fault.node];
      proxy?.cut();
      await sleep(fault.durationMs);
      proxy?.heal();
    }),
  "black hole to PostgreSQL": (cluster, fault) => blackHole(cluster, fault, "up"),
  "black hole from PostgreSQL": (cluster, fault) => blackHole(cluster, fault, "down"),
  "slow PostgreSQL": async (cluster, fault) => {
    const proxy = cluster.toPostgres[fault.node];
    proxy?.delay(50);
    await sleep(fault.durationMs);
    proxy?.heal();
  },
  "cut from peers": async (cluster, fault) => {
    for (const proxy of cluster.linksOf(fault.node)) proxy.cut();
    await sleep(fault.durationMs);
    for (const proxy of cluster.linksOf(fault.node)) proxy.heal();
  },
  "black hole from peers": async (cluster, fault) => {
    // What this node dials keeps its connection, and is never answered.
    for (const proxy of cluster.links[fault.node] ?? []) proxy?.hold("down");
    await sleep(fault.durationMs);
    for (const proxy of cluster.links[fault.node] ?? []) proxy?.heal();
  },
  "reset of all connections": async (cluster, fault) => {
    for (const proxy of [cluster.toPostgres[fault.node], ...cluster.linksOf(fault.node)]) proxy?.reset();
  },
  "PostgreSQL restarts": (cluster, fault) => withoutPostgres(cluster, fault, "fast"),
  "PostgreSQL is shut down immediately": (cluster, fault) => withoutPostgres(cluster, fault, "immediate"),
  "PostgreSQL crashes": (cluster, fault) => withoutPostgres(cluster, fault, "kill"),
  "PostgreSQL hangs": (cluster, fault) =>
    isolated(cluster.nodes, async () => {
      await cluster.postgres.freeze();
      await sleep(fault.durationMs);
      await cluster.postgres.thaw();
    }),
};

export function inject(cluster: ChaosCluster, fault: PlannedFault): Promise<void> {
  return FAULTS[fault.kind](cluster, fault);
}

export function describeFault({ kind, node, durationMs }: PlannedFault): string {
  const isOfPostgres = kind.startsWith("PostgreSQL");
  return `${isOfPostgres ? "" : `node-${node + 1}: `}${kind}, ${durationMs} ms`;
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
    const proxy = cluster.toPostgres[fault.node];
    proxy?.hold(direction);
    await sleep(fault.durationMs);
    proxy?.heal();
  });
}

function withoutPostgres(
  cluster: ChaosCluster,
  { durationMs }: PlannedFault,
  how: "fast" | "immediate" | "kill",
): Promise<void> {
  return isolated(cluster.nodes, async () => {
    await cluster.postgres.stop(how);
    await sleep(durationMs);
    await cluster.postgres.start();
  });
}

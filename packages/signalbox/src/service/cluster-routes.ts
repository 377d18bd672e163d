/** The management routes of the cluster. They answer without the database: operators need them when it is gone. */
import { z } from "zod";
import type { Config } from "../config/index.ts";
import type { Route } from "../http/route.ts";
import { defineRoute } from "../http/route.ts";
import { VERSION } from "../version.ts";
import { refOf } from "../agents/instance/instance-ref.ts";
import { NodeReports } from "./node-reports.ts";
import { type Cluster, clusterOf, networkOf, nodeOf, type Topology } from "./topology.ts";

export interface ClusterParts {
  readonly config: Config;
  readonly topology: Topology;
  readonly isStopping: () => boolean;
  readonly problems: () => readonly string[];
}

const agentsSchema = z.object({
  held: z.int(),
  claims: z.int(),
  take_overs: z.int(),
  /** The last ones, newest first. `from` is null if the name of that node is not known any more. */
  recent_take_overs: z.array(
    z.object({
      account: z.string(),
      agent: z.string(),
      name: z.string(),
      from: z.string().nullable(),
      at: z.iso.datetime(),
    }),
  ),
  refusals: z.int(),
  unknown_outcomes: z.int(),
  lost_records: z.int(),
  lag_ms: z.int(),
  log_records: z.int(),
  log_bytes: z.int(),
  oldest_snapshot_ms: z.int(),
});

const nodeSchema = z.object({
  id: z.string(),
  name: z.string(),
  address: z.string().nullable(),
  version: z.string(),
  state: z.enum(["up", "draining"]),
  age_ms: z.int(),
  joined_at: z.iso.datetime(),
  link: z.enum(["self", "up", "down"]),
  /** What the node reports about itself, as in `/cluster`; null if it does not answer. */
  problems: z.array(z.string()).nullable(),
  agents: agentsSchema.nullable(),
});

export type ClusterNodeView = z.output<typeof nodeSchema>;

const statusSchema = z.object({
  node: z.string(),
  mode: z.enum(["single", "cluster"]),
  database: z.enum(["sqlite", "postgres"]),
  problems: z.array(z.string()),
  heartbeat_age_ms: z.int().nullable(),
  max_stale_ms: z.int().nullable(),
  is_stale: z.boolean(),
  clock_offset_ms: z.int().nullable(),
  lost_commits: z.object({ count: z.int(), writes: z.int(), last_at: z.iso.datetime().nullable() }),
  settings: z.array(
    z.object({ name: z.string(), value: z.string(), is_safe: z.boolean(), note: z.string().nullable() }),
  ),
  /** Nodes that were declared dead lately, and have not joined again. */
  lost_nodes: z.array(
    z.object({ id: z.string(), name: z.string(), version: z.string(), last_seen_at: z.iso.datetime() }),
  ),
  /** The instances of this node, since its start, and their histories in PostgreSQL; null without a cluster. */
  agents: agentsSchema.nullable(),
});

export type ClusterStatusView = z.output<typeof statusSchema>;

/** When this process started, for a node that has no row in a database. */
const STARTED_AT = new Date(Date.now() - performance.now());

export function clusterRoutes(parts: ClusterParts): Route[] {
  const network = networkOf(parts.topology);
  const reports =
    network &&
    new NodeReports<ClusterStatusView>(
      network,
      () => toStatus(parts),
      (value) => statusSchema.safeParse(value).data ?? null,
    );
  return [
    defineRoute({
      method: "GET",
      path: "/cluster",
      access: "root",
      isAlwaysServed: true,
      summary: "Get the state of this node and of its database.",
      result: statusSchema,
      handler: () => ({ result: toStatus(parts) }),
    }),
    defineRoute({
      method: "GET",
      path: "/cluster/nodes",
      access: "root",
      isAlwaysServed: true,
      summary: "List the nodes of the cluster as this node sees them, with what each of them reports.",
      result: z.array(nodeSchema),
      handler: async () => ({ result: listNodes(parts, await reports?.read()) }),
    }),
  ];
}

function toStatus({ config, topology, problems }: ClusterParts): ClusterStatusView {
  const node = nodeOf(topology);
  const cluster = clusterOf(topology);
  const heartbeats = node?.session.heartbeats ?? null;
  const loss = node?.losses ?? { count: 0, writes: 0, lastAt: null };
  return {
    node: config.nodeName,
    mode: cluster === null ? "single" : "cluster",
    database: node === null ? "sqlite" : "postgres",
    problems: [...problems()],
    heartbeat_age_ms: heartbeats === null ? null : Math.round(heartbeats.ageMs),
    max_stale_ms: node?.maxStaleMs ?? null,
    is_stale: node?.isStale === true,
    clock_offset_ms: heartbeats === null ? null : Math.round(heartbeats.clockOffsetMs),
    lost_commits: {
      count: loss.count,
      writes: loss.writes,
      last_at: loss.lastAt === null ? null : new Date(loss.lastAt).toISOString(),
    },
    settings: (node?.settings ?? []).map(({ name, value, isSafe, note }) => ({
      name,
      value,
      is_safe: isSafe,
      note,
    })),
    lost_nodes: (cluster?.network.lost ?? []).map(({ inc, name, version, lastSeenAt }) => ({
      id: inc,
      name,
      version,
      last_seen_at: new Date(lastSeenAt).toISOString(),
    })),
    agents: cluster === null ? null : toAgents(cluster),
  };
}

function toAgents({ report, network }: Cluster): NonNullable<ClusterStatusView["agents"]> {
  const { figures, recentTakeOvers, held, lagMs, size } = report;
  return {
    held,
    claims: figures.claims,
    take_overs: figures.takeOvers,
    recent_take_overs: recentTakeOvers.toReversed().map(({ name, from, at }) => ({
      ...refOf(name),
      from: network.nameOf(from) ?? null,
      at: new Date(at).toISOString(),
    })),
    refusals: figures.refusals,
    unknown_outcomes: figures.unknownOutcomes,
    lost_records: figures.lostRecords,
    lag_ms: Math.round(lagMs),
    log_records: Math.round(size.records),
    log_bytes: Math.round(size.bytes),
    oldest_snapshot_ms: Math.round(size.oldestSnapshotMs),
  };
}

function listNodes(
  { config, topology, isStopping, problems }: ClusterParts,
  reports: ReadonlyMap<string, ClusterStatusView> | undefined,
): ClusterNodeView[] {
  const session = nodeOf(topology)?.session;
  if (session === undefined) {
    const state = isStopping() ? "draining" : "up";
    const joinedAt = STARTED_AT.toISOString();
    return [
      {
        id: "1",
        name: config.nodeName,
        address: null,
        version: VERSION,
        state,
        age_ms: 0,
        joined_at: joinedAt,
        link: "self",
        problems: [...problems()],
        agents: null,
      },
    ];
  }
  const linked = new Set(networkOf(topology)?.linked);
  const problemsOf = (inc: string) =>
    inc === session.identity.inc ? [...problems()] : (reports?.get(inc)?.problems ?? null);
  const { members, ageMs } = session.heartbeats;
  return members.map((member) => ({
    id: member.inc,
    name: member.name,
    address: member.port === 0 ? null : `${bracketed(member.host)}:${member.port}`,
    version: member.version,
    state: member.state,
    // The list is as old as the heartbeat that returned it.
    age_ms: Math.round(member.ageMs + ageMs),
    joined_at: new Date(member.joinedAt).toISOString(),
    link: member.inc === session.identity.inc ? "self" : linked.has(member.inc) ? "up" : "down",
    problems: problemsOf(member.inc),
    agents: reports?.get(member.inc)?.agents ?? null,
  }));
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

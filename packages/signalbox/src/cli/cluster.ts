/** `signalbox cluster …` */
import type { ClusterNode, ClusterStatus } from "@signalbox/client";
import type { Command } from "./command.ts";
import { CLIENT_OPTIONS } from "./options.ts";
import { requireRunningServer } from "./running-server.ts";
import { table } from "./table.ts";

const ADVICE = "give the address of a node with --url";

export const clusterCommands: readonly Command[] = [
  {
    words: ["cluster", "nodes"],
    summary: "List the nodes of the cluster as the server sees them.",
    options: CLIENT_OPTIONS,
    async run(context) {
      await requireRunningServer(context, ADVICE);
      const { cluster } = await context.client();
      const [nodes, { lost_nodes: lost }] = await Promise.all([cluster.nodes(), cluster.status()]);
      context.print(nodes, (rows) => {
        const living = rows.map((row) => [
          row.id,
          row.name,
          row.address ?? "-",
          row.version,
          stateOf(row),
          `${(row.age_ms / 1000).toFixed(1)} s ago`,
          row.joined_at,
          row.link,
          row.agents === null ? "-" : String(row.agents.held),
        ]);
        const dead = lost.map((row) => [
          row.id,
          row.name,
          "-",
          row.version,
          "dead",
          row.last_seen_at,
          "-",
          "-",
          "-",
        ]);
        return table(
          ["id", "name", "address", "version", "state", "heartbeat", "joined", "link", "instances"],
          [...living, ...dead],
          "no nodes",
        );
      });
    },
  },
  {
    words: ["cluster", "status"],
    summary: "Show the state of the server and of its database: readiness, lost commits, unsafe settings.",
    options: CLIENT_OPTIONS,
    async run(context) {
      await requireRunningServer(context, ADVICE);
      const status = await (await context.client()).cluster.status();
      context.print(status, (shown) => table(["name", "value"], linesOf(shown), ""));
    },
  },
];

function stateOf({ state, problems }: ClusterNode): string {
  return state === "up" && problems !== null && problems.length > 0 ? "not ready" : state;
}

function linesOf(status: ClusterStatus): (readonly string[])[] {
  const { lost_commits: lost } = status;
  const lines: (readonly string[])[] = [
    ["node", status.node],
    ["mode", status.mode],
    ["database", status.database],
    ["ready", status.problems.length === 0 ? "yes" : `no: ${status.problems.join("; ")}`],
  ];
  if (status.heartbeat_age_ms === null) return lines;
  lines.push(
    ["heartbeat", `${(status.heartbeat_age_ms / 1000).toFixed(1)} s ago`],
    ["clock offset", `${((status.clock_offset_ms ?? 0) / 1000).toFixed(1)} s`],
    [
      "lost commits",
      lost.count === 0
        ? "none noticed"
        : `noticed ${lost.count} times, at least ${lost.writes} writes, last at ${lost.last_at}`,
    ],
  );
  const { agents } = status;
  if (agents !== null)
    lines.push(
      ["instances", `${agents.held} of this node, ${agents.take_overs} taken over since its start`],
      ["refused writes", String(agents.refusals)],
      ["lost records", String(agents.lost_records)],
      ["waiting writes", `oldest ${(agents.lag_ms / 1000).toFixed(1)} s`],
      ["records", `${agents.log_records}, ${(agents.log_bytes / 1e6).toFixed(1)} MB in PostgreSQL`],
      ["oldest snapshot", `${(agents.oldest_snapshot_ms / 1000).toFixed(1)} s`],
    );
  for (const { name, value, is_safe, note } of status.settings)
    lines.push([
      name,
      `${value === "" ? "''" : value}${is_safe ? "" : " UNSAFE"}${note === null ? "" : `: ${note}`}`,
    ]);
  return lines;
}

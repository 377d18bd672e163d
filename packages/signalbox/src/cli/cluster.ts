/** `signalbox cluster …` */
import type { ClusterStatus } from "@signalbox/client";
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
      const nodes = await (await context.client()).cluster.nodes();
      context.print(nodes, (rows) =>
        table(
          ["id", "name", "address", "version", "state", "heartbeat", "joined", "link"],
          rows.map((row) => [
            row.id,
            row.name,
            row.address ?? "-",
            row.version,
            row.state,
            `${(row.age_ms / 1000).toFixed(1)} s ago`,
            row.joined_at,
            row.link,
          ]),
          "no nodes",
        ),
      );
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
  for (const { name, value, is_safe, note } of status.settings)
    lines.push([
      name,
      `${value === "" ? "''" : value}${is_safe ? "" : " UNSAFE"}${note === null ? "" : `: ${note}`}`,
    ]);
  return lines;
}

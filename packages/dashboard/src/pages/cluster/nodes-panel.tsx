/** The nodes of the cluster: those that are alive, as each reports about itself, and those that were lost. */
import type { ClusterNode, ClusterStatus, LostNode } from "@signalbox/client";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { duration } from "../../format/number.ts";

interface NodesPanelProps {
  readonly status: ClusterStatus;
  readonly nodes: readonly ClusterNode[];
}

type Row = { readonly living: ClusterNode } | { readonly lost: LostNode };

export function NodesPanel({ status, nodes }: NodesPanelProps) {
  const rows: readonly Row[] = [
    ...nodes.map((living) => ({ living })),
    ...status.lost_nodes.map((lost) => ({ lost })),
  ];
  return (
    <section className="panel" aria-labelledby="nodes-title">
      <h2 id="nodes-title">Nodes</h2>
      <Table
        label="Nodes"
        rows={rows}
        keyOf={(row) => nodeOf(row).id}
        columns={[
          { title: "Name", cell: (row) => <strong className="nowrap">{nodeOf(row).name}</strong> },
          { title: "State", cell: (row) => <State row={row} /> },
          { title: "Link", cell: (row) => ("living" in row ? <Link node={row.living} /> : "–") },
          { title: "Address", cell: (row) => <Address row={row} />, isMinor: true },
          { title: "Version", cell: (row) => nodeOf(row).version, isMinor: true },
          { title: "Heartbeat", cell: (row) => <Heartbeat row={row} />, align: "end" },
          {
            title: "Joined",
            cell: (row) => ("living" in row ? <Time at={row.living.joined_at} /> : "–"),
            align: "end",
            isMinor: true,
          },
        ]}
      />
      {status.lost_nodes.length > 0 && (
        <p className="muted small">
          A dead node has crashed, or cannot reach the database. It is listed for an hour, or until it joins
          again.
        </p>
      )}
      {status.mode === "single" && <p className="muted small">{aloneText(status)}</p>}
    </section>
  );
}

function nodeOf(row: Row): ClusterNode | LostNode {
  return "living" in row ? row.living : row.lost;
}

function State({ row }: { readonly row: Row }) {
  if ("lost" in row) return <Badge tone="bad">dead</Badge>;
  const { state, problems } = row.living;
  if (state === "draining") return <Badge tone="warn">draining</Badge>;
  if (problems === null) return <Badge tone="warn">no answer</Badge>;
  return problems.length === 0 ? <Badge tone="good">up</Badge> : <Badge tone="warn">not ready</Badge>;
}

const LINKS: Readonly<Record<ClusterNode["link"], { readonly tone: Tone; readonly text: string }>> = {
  self: { tone: "neutral", text: "this node" },
  up: { tone: "good", text: "connected" },
  down: { tone: "bad", text: "no link" },
};

function Link({ node }: { readonly node: ClusterNode }) {
  const { tone, text } = LINKS[node.link];
  return <Badge tone={tone}>{text}</Badge>;
}

function Address({ row }: { readonly row: Row }) {
  if ("lost" in row || row.living.address === null) return "–";
  return <code className="nowrap">{row.living.address}</code>;
}

function Heartbeat({ row }: { readonly row: Row }) {
  if ("lost" in row) return <Time at={row.lost.last_seen_at} />;
  return `${duration(row.living.age_ms)} ago`;
}

function aloneText({ database }: ClusterStatus): string {
  return database === "sqlite"
    ? "This server runs alone, with SQLite in its data folder."
    : "This server uses PostgreSQL alone. With SIGNALBOX_CLUSTER_SECRET, several nodes share it.";
}

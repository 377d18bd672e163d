/** Metrics of the database's heartbeats and of the cluster: none with SQLite. */
import type { Registry } from "prom-client";
import { registerGauge, registerMetric } from "../telemetry/instruments.ts";
import type { Topology } from "./topology.ts";

export function registerClusterMetrics(registry: Registry, topology: Topology): void {
  if (topology.kind === "single") return;
  const { node } = topology;
  const heartbeats = () => node.session.heartbeats;
  registerGauge(
    registry,
    {
      name: "signalbox_database_heartbeat_age_seconds",
      help: "Time since PostgreSQL last acknowledged a heartbeat of this node.",
    },
    () => heartbeats().ageMs / 1000,
  );
  registerGauge(
    registry,
    {
      name: "signalbox_database_clock_offset_seconds",
      help: "How far the clock of this machine is ahead of PostgreSQL's; negative if it is behind.",
    },
    () => heartbeats().clockOffsetMs / 1000,
  );
  registerGauge(
    registry,
    {
      name: "signalbox_database_stale",
      help: "1 while this node refuses requests because it has not reached PostgreSQL for cluster.maxStaleMs.",
    },
    () => (node.isStale ? 1 : 0),
  );
  registerGauge(
    registry,
    {
      name: "signalbox_database_unsafe_settings",
      help: "Settings of PostgreSQL with which acknowledged writes can be lost.",
    },
    () => node.settings.filter(({ isSafe }) => !isSafe).length,
  );
  registerMetric(
    registry,
    "counter",
    {
      name: "signalbox_database_losses_total",
      help: "How often PostgreSQL came back without commits that it had acknowledged to this node.",
    },
    () => [{ value: node.losses.count, labels: {} }],
  );
  registerMetric(
    registry,
    "counter",
    {
      name: "signalbox_database_lost_writes_total",
      help: "Acknowledged writes of this node that PostgreSQL has lost, at least.",
    },
    () => [{ value: node.losses.writes, labels: {} }],
  );
  if (topology.kind !== "cluster") return;
  const { network, report } = topology;
  report.start(registry);
  registerMetric(
    registry,
    "gauge",
    { name: "signalbox_cluster_nodes", help: "Living nodes as this node sees them, by state." },
    () =>
      (["up", "draining"] as const).map((state) => ({
        value: network.members.filter((member) => member.state === state).length,
        labels: { state },
      })),
  );
  registerGauge(
    registry,
    { name: "signalbox_cluster_links", help: "Open links to other nodes." },
    () => network.linked.length,
  );
}

/** The agents' metrics. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { PlainHistogram } from "../telemetry/plain-histogram.ts";
import { createDurations, DurationsByLabel, PairCounter } from "../telemetry/plain-metrics.ts";

/** Seconds, from a method that only reads to a turn that waits for other services. */
const TURN_BUCKETS = [0.0001, 0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 30];

export interface AgentMetrics {
  /** By kind and outcome. */
  readonly turns: PairCounter;
  /** By kind. */
  readonly turnDurations: DurationsByLabel;
  readonly syncDurations: PlainHistogram;
  readonly starts: Counter<"outcome">;
  readonly hibernations: Counter;
  readonly buried: Counter<"kind">;
  readonly lostCloses: Counter;
}

export interface Levels {
  readonly instances: () => number;
  readonly sockets: () => number;
  readonly waitingTurns: () => number;
}

export function createAgentMetrics(registry: Registry, levels: Levels): AgentMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge("signalbox_agent_instances", "Instances in memory.", levels.instances);
  gauge("signalbox_agent_sockets", "Open WebSocket connections.", levels.sockets);
  gauge(
    "signalbox_agent_waiting_turns",
    "Events that wait in the mailboxes of instances.",
    levels.waitingTurns,
  );
  return {
    turns: new PairCounter(registry, {
      name: "signalbox_agent_turns_total",
      help: "Turns that ended, by kind and outcome.",
      labels: ["kind", "outcome"],
    }),
    turnDurations: new DurationsByLabel(
      registry,
      {
        name: "signalbox_agent_turn_duration_seconds",
        help: "Duration of turns, without the wait before and the sync after.",
        label: "kind",
      },
      TURN_BUCKETS,
    ),
    syncDurations: createDurations(
      registry,
      "signalbox_agent_sync_duration_seconds",
      "Time to make the commits of an instance durable.",
      TURN_BUCKETS,
    ),
    starts: new Counter({
      name: "signalbox_agent_starts_total",
      help: "Instances loaded into memory, by outcome: new, woken or failed.",
      labelNames: ["outcome"],
      registers,
    }),
    hibernations: new Counter({
      name: "signalbox_agent_hibernations_total",
      help: "Instances that left memory.",
      registers,
    }),
    buried: new Counter({
      name: "signalbox_agent_buried_total",
      help: "Queue items and schedules that used up their attempts.",
      labelNames: ["kind"],
      registers,
    }),
    lostCloses: new Counter({
      name: "signalbox_agent_lost_closes_total",
      help: "Closed connections whose onClose did not run.",
      registers,
    }),
  };
}

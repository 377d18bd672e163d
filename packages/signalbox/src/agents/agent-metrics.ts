/** The agents' part of `/metrics`. */
import type { Registry } from "prom-client";
import { LabelledCounter, LabelledHistogram, registerGauge } from "../telemetry/instruments.ts";

/** Seconds; from a method that only reads to a turn that waits for others. */
const TURN_BUCKETS = [0.0001, 0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 30];

export interface AgentMetrics {
  /** By kind and outcome. */
  readonly turns: LabelledCounter;
  /** By kind. */
  readonly turnDurations: LabelledHistogram;
  readonly syncDurations: LabelledHistogram;
  /** By outcome. */
  readonly starts: LabelledCounter;
  readonly hibernations: LabelledCounter;
  /** By kind. */
  readonly buried: LabelledCounter;
  readonly lostCloses: LabelledCounter;
}

export function createAgentMetrics(registry: Registry): AgentMetrics {
  const counter = (name: string, help: string, labels: readonly string[] = []) =>
    new LabelledCounter(registry, { name: `signalbox_agent_${name}`, help, labels });
  const histogram = (name: string, help: string, labels: readonly string[] = []) =>
    new LabelledHistogram(registry, { name: `signalbox_agent_${name}`, help, labels }, TURN_BUCKETS);
  return {
    turns: counter("turns_total", "Completed turns, by kind and outcome.", ["kind", "outcome"]),
    turnDurations: histogram(
      "turn_duration_seconds",
      "Time from the start of a turn to its end, without queueing and sync.",
      ["kind"],
    ),
    syncDurations: histogram("sync_duration_seconds", "Time to make the commits of an instance durable."),
    starts: counter("starts_total", "Instances loaded into memory: new, woken or failed.", ["outcome"]),
    hibernations: counter("hibernations_total", "Instances that left memory."),
    buried: counter("buried_total", "Queue items and schedules that used up their attempts.", ["kind"]),
    lostCloses: counter("lost_closes_total", "Closed connections whose onClose could not be run."),
  };
}

export function registerAgentGauges(
  registry: Registry,
  directory: { readonly size: number; readonly waitingTurns: number },
  hub: { readonly size: number },
): void {
  const gauge = (name: string, help: string, read: () => number) =>
    registerGauge(registry, { name: `signalbox_agent_${name}`, help }, read);
  gauge("instances", "Instances in memory.", () => directory.size);
  gauge("sockets", "Open WebSocket connections.", () => hub.size);
  gauge("waiting_turns", "Events waiting in the mailboxes of instances.", () => directory.waitingTurns);
}

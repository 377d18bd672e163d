/** Prometheus metrics. Areas register their own on the shared registry; labels are route names and codes, never ids or paths. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import { RequestMeter } from "./request-meter.ts";

/** Seconds; from a cached answer to a long model call. */
export const DURATION_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

export interface HttpMetrics {
  readonly requests: RequestMeter;
  readonly connections: Gauge;
  readonly malformed: Counter;
}

export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

export function createHttpMetrics(registry: Registry): HttpMetrics {
  const registers = [registry];
  return {
    requests: new RequestMeter(registry, DURATION_BUCKETS),
    connections: new Gauge({ name: "signalbox_http_connections", help: "Open TCP connections.", registers }),
    malformed: new Counter({
      name: "signalbox_http_malformed_total",
      help: "Connections ended because what arrived was not valid HTTP, too large or too slow.",
      registers,
    }),
  };
}

/** Prometheus metrics. Areas register their own on the shared registry; labels are route names and codes, never ids or paths. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/** Seconds; from a cached answer to a long model call. */
export const DURATION_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

export interface HttpMetrics {
  readonly requests: Counter<"area" | "method" | "status">;
  readonly durations: Histogram<"area">;
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
    requests: new Counter({
      name: "signalbox_http_requests_total",
      help: "Requests answered, by area, method and status.",
      labelNames: ["area", "method", "status"],
      registers,
    }),
    durations: new Histogram({
      name: "signalbox_http_request_duration_seconds",
      help: "Time from a request's headers to the end of its answer.",
      labelNames: ["area"],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    connections: new Gauge({ name: "signalbox_http_connections", help: "Open TCP connections.", registers }),
    malformed: new Counter({
      name: "signalbox_http_malformed_total",
      help: "Connections ended because what arrived was not valid HTTP, too large or too slow.",
      registers,
    }),
  };
}

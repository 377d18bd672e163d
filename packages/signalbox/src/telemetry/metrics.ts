/** The registry and the HTTP metrics. Labels are names of areas, methods and codes, never ids or paths. */
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { LabelledCounter, LabelledHistogram } from "./instruments.ts";

/** In seconds: from a cached response to a long model call. */
export const DURATION_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

export interface HttpMetrics {
  /** By area, method and status. */
  readonly requests: LabelledCounter;
  /** Seconds, by area. */
  readonly durations: LabelledHistogram;
  readonly connections: Gauge;
  readonly malformed: LabelledCounter;
}

export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

export function createHttpMetrics(registry: Registry): HttpMetrics {
  return {
    requests: new LabelledCounter(registry, {
      name: "signalbox_http_requests_total",
      help: "Requests answered, by area, method and status.",
      labels: ["area", "method", "status"],
    }),
    durations: new LabelledHistogram(
      registry,
      {
        name: "signalbox_http_request_duration_seconds",
        help: "Time from a request's headers to the end of its response.",
        labels: ["area"],
      },
      DURATION_BUCKETS,
    ),
    connections: new Gauge({
      name: "signalbox_http_connections",
      help: "Open TCP connections.",
      registers: [registry],
    }),
    malformed: new LabelledCounter(registry, {
      name: "signalbox_http_malformed_total",
      help: "Connections closed because the bytes received were not valid HTTP, too many or too late.",
    }),
  };
}

/**
 * The gateway's Prometheus metrics. Labels are provider slugs and outcomes; accounts, gateways and models would have no bound.
 * What is counted on every call is plain numbers, read when Prometheus asks.
 */
import { Counter, type MetricValue, type Registry } from "prom-client";
import type { CallLogSize, CallUsage } from "../engines/call-log/index.ts";
import { DURATION_BUCKETS } from "../telemetry/metrics.ts";
import { PlainHistogram } from "../telemetry/plain-histogram.ts";
import { metricReader } from "../telemetry/plain-metrics.ts";
import { CUSTOM_PREFIX } from "./providers/provider-directory.ts";

/** Seconds of our own work: from tens of microseconds to "something is wrong". */
const OVERHEAD_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

class ProviderFigures {
  readonly calls = new Map<number, number>();
  readonly firstByte = new PlainHistogram(DURATION_BUCKETS);
  tokensIn = 0;
  tokensOut = 0;
  cost = 0;
  cached = 0;
}

export class GatewayMetrics {
  /** Calls that have been accepted and not ended. */
  inFlight = 0;
  /** Memory that bodies take now. */
  readBufferedBytes: () => number = () => 0;
  readonly #overhead = new PlainHistogram(OVERHEAD_BUCKETS);
  readonly #providers = new Map<string, ProviderFigures>();
  readonly #retries: Counter<"provider">;
  readonly #refusals: Counter<"reason">;
  readonly #logSize: () => CallLogSize;

  /** `logSize` is read when Prometheus asks. */
  constructor(registry: Registry, logSize: () => CallLogSize) {
    const registers = [registry];
    this.#logSize = logSize;
    this.#retries = new Counter({
      name: "signalbox_gateway_retries_total",
      help: "Attempts after the first, and steps after the first.",
      labelNames: ["provider"],
      registers,
    });
    this.#refusals = new Counter({
      name: "signalbox_gateway_refusals_total",
      help: "Calls the gateway turned away, by error name.",
      labelNames: ["reason"],
      registers,
    });
    for (const metric of this.#readers()) registry.registerMetric(metric);
  }

  overhead(ms: number): void {
    this.#overhead.observe(ms / 1000);
  }

  retried(provider: string): void {
    this.#retries.inc({ provider: label(provider) });
  }

  refused(reason: string): void {
    this.#refusals.inc({ reason });
  }

  ended(
    provider: string,
    status: number,
    firstByteMs: number | null,
    usage: CallUsage,
    cost: number | null,
    isCached: boolean,
  ): void {
    const figures = this.#figuresOf(provider);
    figures.calls.set(status, (figures.calls.get(status) ?? 0) + 1);
    if (firstByteMs !== null) figures.firstByte.observe(firstByteMs / 1000);
    if (isCached) {
      figures.cached += 1;
      return;
    }
    figures.tokensIn += usage.tokensIn;
    figures.tokensOut += usage.tokensOut;
    figures.cost += cost ?? 0;
  }

  #figuresOf(slug: string): ProviderFigures {
    const provider = label(slug);
    let figures = this.#providers.get(provider);
    if (figures === undefined) {
      figures = new ProviderFigures();
      this.#providers.set(provider, figures);
    }
    return figures;
  }

  #readers() {
    const name = "signalbox_gateway";
    const firstByte = `${name}_first_byte_seconds`;
    const overhead = `${name}_overhead_seconds`;
    return [
      metricReader(`${name}_calls_in_flight`, "Calls that have been accepted and not ended.", "gauge", () => [
        { value: this.inFlight, labels: {} },
      ]),
      metricReader(`${name}_buffered_bytes`, "Memory that bodies of calls take.", "gauge", () => [
        { value: this.readBufferedBytes(), labels: {} },
      ]),
      metricReader(`${name}_calls_total`, "Ended calls by provider and status.", "counter", () =>
        this.#each((provider, figures) =>
          [...figures.calls].map(([status, value]) => ({ value, labels: { provider, status } })),
        ),
      ),
      metricReader(`${name}_tokens_total`, "Tokens as the providers report them.", "counter", () =>
        this.#each((provider, figures) => [
          { value: figures.tokensIn, labels: { provider, direction: "in" } },
          { value: figures.tokensOut, labels: { provider, direction: "out" } },
        ]),
      ),
      metricReader(`${name}_cost_dollars_total`, "Cost of calls whose price is known.", "counter", () =>
        this.#each((provider, figures) => [{ value: figures.cost, labels: { provider } }]),
      ),
      metricReader(`${name}_cache_hits_total`, "Calls answered from the cache.", "counter", () =>
        this.#each((provider, figures) => [{ value: figures.cached, labels: { provider } }]),
      ),
      metricReader(
        firstByte,
        "Time from a call's headers to the first byte of its answer.",
        "histogram",
        () => this.#each((provider, figures) => figures.firstByte.values(firstByte, { provider })),
      ),
      metricReader(
        overhead,
        "Time a call spent in the gateway before it went upstream, its body's arrival included.",
        "histogram",
        () => this.#overhead.values(overhead, {}),
      ),
      metricReader(`${name}_log_bytes`, "Disk that stored calls take, as of the last write.", "gauge", () => [
        { value: this.#logSize().bytes, labels: {} },
      ]),
      metricReader(
        `${name}_log_removed_total`,
        "Stored bodies and rows that were removed to keep the log within its size.",
        "counter",
        () => [
          { value: this.#logSize().bodiesRemoved, labels: { kind: "body" } },
          { value: this.#logSize().rowsRemoved, labels: { kind: "row" } },
        ],
      ),
    ];
  }

  #each(read: (provider: string, figures: ProviderFigures) => MetricValue<string>[]): MetricValue<string>[] {
    return [...this.#providers].flatMap(([provider, figures]) => read(provider, figures));
  }
}

/** Accounts name their own providers as they like; one label for all of them keeps the series few. */
function label(slug: string): string {
  return slug.startsWith(CUSTOM_PREFIX) ? "custom" : slug;
}

/** The gateway's Prometheus metrics. Labels are provider slugs and outcomes; accounts, gateways and models would have no bound. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { CallUsage } from "../storage/ports/call-log.ts";
import { DURATION_BUCKETS } from "../telemetry/metrics.ts";
import { CUSTOM_PREFIX } from "./providers/provider-directory.ts";

/** Seconds of our own work: from tens of microseconds to "something is wrong". */
const OVERHEAD_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

/** Metric children by label, looked up once: `labels()` costs more than the increment. */
interface ProviderMetrics {
  readonly calls: Map<number, Counter.Internal>;
  readonly firstByte: Histogram.Internal<string>;
  readonly tokensIn: Counter.Internal;
  readonly tokensOut: Counter.Internal;
  readonly cost: Counter.Internal;
  readonly cached: Counter.Internal;
}

export class GatewayMetrics {
  readonly inFlight: Gauge.Internal<string>;
  readonly #overhead: Histogram;
  readonly #calls: Counter<"provider" | "status">;
  readonly #tokens: Counter<"provider" | "direction">;
  readonly #cost: Counter<"provider">;
  readonly #cached: Counter<"provider">;
  readonly #firstByte: Histogram<"provider">;
  readonly #retries: Counter<"provider">;
  readonly #refusals: Counter<"reason">;
  readonly #byProvider = new Map<string, ProviderMetrics>();

  constructor(registry: Registry) {
    const registers = [registry];
    const gauge = new Gauge({
      name: "signalbox_gateway_calls_in_flight",
      help: "Calls that have been accepted and not ended.",
      registers,
    });
    this.inFlight = gauge.labels();
    this.#overhead = new Histogram({
      name: "signalbox_gateway_overhead_seconds",
      help: "Time a call spent in the gateway itself before it went upstream, request body excluded.",
      buckets: OVERHEAD_BUCKETS,
      registers,
    });
    this.#calls = new Counter({
      name: "signalbox_gateway_calls_total",
      help: "Ended calls by provider and status.",
      labelNames: ["provider", "status"],
      registers,
    });
    this.#tokens = new Counter({
      name: "signalbox_gateway_tokens_total",
      help: "Tokens as the providers report them.",
      labelNames: ["provider", "direction"],
      registers,
    });
    this.#cost = new Counter({
      name: "signalbox_gateway_cost_dollars_total",
      help: "Cost in US dollars of calls whose price is known.",
      labelNames: ["provider"],
      registers,
    });
    this.#cached = new Counter({
      name: "signalbox_gateway_cache_hits_total",
      help: "Calls answered from the cache.",
      labelNames: ["provider"],
      registers,
    });
    this.#firstByte = new Histogram({
      name: "signalbox_gateway_first_byte_seconds",
      help: "Time from a call's headers to the first byte of its answer.",
      labelNames: ["provider"],
      buckets: DURATION_BUCKETS,
      registers,
    });
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
    const of = this.#of(provider);
    let calls = of.calls.get(status);
    if (calls === undefined) {
      calls = this.#calls.labels({ provider: label(provider), status });
      of.calls.set(status, calls);
    }
    calls.inc();
    if (firstByteMs !== null) of.firstByte.observe(firstByteMs / 1000);
    if (isCached) {
      of.cached.inc();
      return;
    }
    if (usage.tokensIn > 0) of.tokensIn.inc(usage.tokensIn);
    if (usage.tokensOut > 0) of.tokensOut.inc(usage.tokensOut);
    if (cost !== null && cost > 0) of.cost.inc(cost);
  }

  #of(slug: string): ProviderMetrics {
    const provider = label(slug);
    let metrics = this.#byProvider.get(provider);
    if (metrics === undefined) {
      metrics = {
        calls: new Map(),
        firstByte: this.#firstByte.labels({ provider }),
        tokensIn: this.#tokens.labels({ provider, direction: "in" }),
        tokensOut: this.#tokens.labels({ provider, direction: "out" }),
        cost: this.#cost.labels({ provider }),
        cached: this.#cached.labels({ provider }),
      };
      this.#byProvider.set(provider, metrics);
    }
    return metrics;
  }
}

/** Accounts name their own providers as they like; one label for all of them keeps the series few. */
function label(slug: string): string {
  return slug.startsWith(CUSTOM_PREFIX) ? "custom" : slug;
}

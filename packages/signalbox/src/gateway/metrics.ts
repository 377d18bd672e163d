/** The gateway's Prometheus metrics. Labels are provider slugs and outcomes; accounts, gateways and models have no bound. */
import type { Registry } from "prom-client";
import type { CallLogSize } from "../engines/call-log/index.ts";
import type { CallSpend } from "./limits/call-spend.ts";
import {
  LabelledCounter,
  LabelledHistogram,
  registerGauge,
  registerMetric,
} from "../telemetry/instruments.ts";
import { DURATION_BUCKETS } from "../telemetry/metrics.ts";
import { CUSTOM_PREFIX } from "./providers/provider.ts";

/** Seconds of our own work. */
const OVERHEAD_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

const PREFIX = "signalbox_gateway";

const CIRCUIT_STATES = ["closed", "open", "half_open"] as const;

interface CircuitCounts {
  readonly opened: ReadonlyMap<string, number>;
  count(state: (typeof CIRCUIT_STATES)[number]): number;
}

export class GatewayMetrics {
  /** Calls that have been accepted and have not ended. */
  inFlight = 0;
  /** Open realtime sessions. */
  sessions = 0;
  readBufferedBytes: () => number = () => 0;
  readonly #calls: LabelledCounter;
  readonly #tokens: LabelledCounter;
  readonly #cost: LabelledCounter;
  readonly #usageUnknown: LabelledCounter;
  readonly #cacheHits: LabelledCounter;
  readonly #retries: LabelledCounter;
  readonly #refusals: LabelledCounter;
  readonly #guardrails: LabelledCounter;
  readonly #sessionEnds: LabelledCounter;
  readonly #firstByte: LabelledHistogram;
  readonly #overhead: LabelledHistogram;

  constructor(registry: Registry, logSize: () => CallLogSize) {
    const counter = (name: string, help: string, labels: readonly string[]) =>
      new LabelledCounter(registry, { name: `${PREFIX}_${name}`, help, labels });
    this.#calls = counter("calls_total", "Ended calls by provider and status.", ["provider", "status"]);
    this.#tokens = counter("tokens_total", "Tokens of calls, as reported by the providers or estimated.", [
      "provider",
      "direction",
    ]);
    this.#cost = counter("cost_dollars_total", "Cost of calls whose price is known.", ["provider"]);
    this.#usageUnknown = counter(
      "usage_unknown_total",
      "Calls whose provider did not report usage: tokens and cost are estimated, or unknown.",
      ["provider", "usage"],
    );
    this.#cacheHits = counter("cache_hits_total", "Calls answered from the cache.", ["provider"]);
    this.#retries = counter("retries_total", "Attempts after the first, and steps after the first.", [
      "provider",
    ]);
    this.#refusals = counter("refusals_total", "Calls refused by the gateway, by error name.", ["reason"]);
    this.#guardrails = counter(
      "guardrail_findings_total",
      "Texts in which guardrails found something, and texts that they could not search or judge, by place and action.",
      ["place", "action"],
    );
    this.#sessionEnds = counter("sessions_ended_total", "Realtime sessions that have ended, by cause.", [
      "cause",
    ]);
    this.#firstByte = new LabelledHistogram(
      registry,
      {
        name: `${PREFIX}_first_byte_seconds`,
        help: "Time from a call's headers to the first byte of its response.",
        labels: ["provider"],
      },
      DURATION_BUCKETS,
    );
    this.#overhead = new LabelledHistogram(
      registry,
      {
        name: `${PREFIX}_overhead_seconds`,
        help: "Time from a call's headers until it was sent upstream, including the arrival of its body.",
      },
      OVERHEAD_BUCKETS,
    );
    this.#registerGauges(registry, logSize);
  }

  overhead(ms: number): void {
    this.#overhead.observe(ms / 1000);
  }

  retried(provider: string): void {
    this.#retries.add(1, label(provider));
  }

  refused(reason: string): void {
    this.#refusals.add(1, reason);
  }

  /** `spend` is null for a call that the cache answered. */
  ended(slug: string, status: number, firstByteMs: number | null, spend: CallSpend | null): void {
    const provider = label(slug);
    this.#calls.add(1, provider, status);
    if (firstByteMs !== null) this.#firstByte.observe(firstByteMs / 1000, provider);
    if (spend === null) {
      this.#cacheHits.add(1, provider);
      return;
    }
    this.used(provider, spend);
    const { state } = spend;
    if (state === "estimated" || state === "unknown") this.#usageUnknown.add(1, provider, state);
  }

  /** What a call used, or one response of a realtime session. */
  used(slug: string, { usage, cost }: Pick<CallSpend, "usage" | "cost">): void {
    const provider = label(slug);
    this.#tokens.add(usage.tokensIn, provider, "in");
    this.#tokens.add(usage.tokensOut, provider, "out");
    this.#cost.add(cost ?? 0, provider);
  }

  /** Rules have names that accounts choose, so they are no labels. */
  guarded(
    findings: readonly { readonly place: string; readonly action: string; readonly count: number }[],
  ): void {
    for (const { place, action, count } of findings) this.#guardrails.add(count, place, action);
  }

  /** `cause` is one of a few words. */
  sessionEnded(cause: string): void {
    this.#sessionEnds.add(1, cause);
  }

  showCircuits(registry: Registry, circuits: CircuitCounts): void {
    registerMetric(
      registry,
      "gauge",
      {
        name: `${PREFIX}_circuits`,
        help: "Targets with recent failures, by the state of their circuit.",
        labels: ["state"],
      },
      () => CIRCUIT_STATES.map((state) => ({ value: circuits.count(state), labels: { state } })),
    );
    registerMetric(
      registry,
      "counter",
      {
        name: `${PREFIX}_circuits_opened_total`,
        help: "How often circuits have opened, by provider.",
        labels: ["provider"],
      },
      () => {
        const byProvider = new Map<string, number>();
        for (const [slug, count] of circuits.opened) {
          byProvider.set(label(slug), (byProvider.get(label(slug)) ?? 0) + count);
        }
        return [...byProvider].map(([provider, value]) => ({ value, labels: { provider } }));
      },
    );
  }

  #registerGauges(registry: Registry, logSize: () => CallLogSize): void {
    const gauge = (name: string, help: string, read: () => number) =>
      registerGauge(registry, { name: `${PREFIX}_${name}`, help }, read);
    gauge("calls_in_flight", "Calls that have been accepted and have not ended.", () => this.inFlight);
    gauge("sessions", "Open realtime sessions.", () => this.sessions);
    gauge("buffered_bytes", "Memory in use for bodies of calls.", () => this.readBufferedBytes());
    gauge("log_bytes", "Disk space of stored calls, as of the last write.", () => logSize().bytes);
    registerMetric(
      registry,
      "counter",
      {
        name: `${PREFIX}_log_removed_total`,
        help: "Stored bodies and rows that were removed to keep the log within its size.",
        labels: ["kind"],
      },
      () => [
        { value: logSize().bodiesRemoved, labels: { kind: "body" } },
        { value: logSize().rowsRemoved, labels: { kind: "row" } },
      ],
    );
  }
}

/** Accounts choose the names of their own providers; one label for all of them bounds the number of series. */
function label(slug: string): string {
  return slug.startsWith(CUSTOM_PREFIX) ? "custom" : slug;
}

/** A call as it is accepted, and the parts of the gateway that run it. */
import type { Token } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { AlertFeedSlot } from "../../contracts/alert-feed.ts";
import type { CallSink } from "../../engines/call-log/index.ts";
import type { HttpRequest, HttpResponse, MemoryShare } from "../../engines/http-server/index.ts";
import type { ResponseHead, UpstreamClient } from "../../engines/relay/index.ts";
import type { CallAccount } from "../limits/call-account.ts";
import type { CallFigures } from "../limits/call-figures.ts";
import type { RouteBudget } from "../limits/call-rules.ts";
import type { ErrorDialect } from "../../http/render-error.ts";
import type { PriceTable } from "../limits/price-table.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { CallOptions } from "../step/call-options.ts";
import type { Step } from "../step/step.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import type { Circuits } from "../reliability/circuits.ts";
import type { TargetLatencies } from "../reliability/target-latencies.ts";
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { StepSource } from "../step/step-source.ts";

export interface CallStart {
  readonly id: string;
  readonly gateway: Gateway;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly requestId: string;
  readonly options: CallOptions;
  readonly steps: readonly Step[];
  /** Whether the response names the step that it came from. */
  readonly showsStep: boolean;
  /** Format of errors of the gateway. */
  readonly errorDialect: ErrorDialect;
  /** `root` for the root token; null when the call has no token. */
  readonly tokenId: string | null;
  /** The token of the call, for its limits and metadata; null for the root token and without a token. */
  readonly token: Token | null;
  readonly createdAt: number;
  /** `performance.now()` when the headers had arrived. */
  readonly startedAt: number;
  readonly cacheStatus: "MISS" | null;
  readonly logDetail: LogDetail;
  /** Steps behind those in `steps`. */
  readonly moreSteps?: StepSource | undefined;
  /** Settles the call under its limits; null for a call without limits. */
  readonly account: CallAccount | null;
  /** The caller's part of the memory for bodies. */
  readonly memory: MemoryShare;
  /** Headers about the route, for every response: name, value, … */
  readonly routeHeaders?: readonly string[] | undefined;
  /** Budgets of the route; undefined when the route has none. */
  readonly budgets?: readonly RouteBudget[] | undefined;
}

/** What the call log stores of a call: no row, a row, or a row and the bodies. */
export type LogDetail = "none" | "row" | "bodies";

export interface CallParts {
  readonly clock: Clock;
  readonly client: UpstreamClient;
  readonly callLog: CallSink;
  readonly gateways: Pick<Gateways, "find">;
  readonly metrics: GatewayMetrics;
  readonly prices: PriceTable;
  /** How many bytes of each body the log stores. */
  readonly payloadBytes: number;
  readonly circuits: Circuits;
  readonly latencies: TargetLatencies;
  /** Describes ended calls to OpenTelemetry; null inside while nothing does. */
  readonly tracing: { readonly current: CallTracing | null };
  readonly alertFeed: AlertFeedSlot;
}

/** Receives every ended call. */
export interface CallTracing {
  ended(start: CallStart, outcome: CallOutcome): void;
}

export interface CallOutcome {
  readonly status: number;
  readonly isComplete: boolean;
  /** The client disconnected before the end. */
  readonly isAbandoned: boolean;
  readonly head: ResponseHead | null;
  readonly figures: CallFigures;
  /** The response body; null when it was not kept whole. */
  readonly body: Buffer | null;
  /** The step that answered, or the last one that was tried. */
  readonly step: Step;
  /** Attempts before and beside the one that answered; null when there were none. */
  readonly otherAttempts: readonly AttemptReport[] | null;
  /** Milliseconds from the headers of the request to the first byte of the response; null when there was none. */
  readonly firstByteMs: number | null;
  /** `performance.now()` when the last attempt was sent; null when there was none. */
  readonly attemptStartedAt: number | null;
}

/** A call as it arrives, is planned, starts and ends; and the parts of the gateway that run it. */
import type { Clock } from "../../core/clock.ts";
import type { AlertFeedSlot } from "../../contracts/alert-feed.ts";
import type { CallSink } from "../../engines/call-log/index.ts";
import type { HttpRequest, HttpResponse, MemoryShare } from "../../engines/http-server/index.ts";
import type { ResponseHead, UpstreamClient } from "../../engines/relay/index.ts";
import type { CallGuard } from "../guardrails/call-guard.ts";
import type { CallAccount } from "../limits/call-account.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { RouteBudget } from "../limits/call-rules.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Caller } from "../keys/caller-token.ts";
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

/** A request whose gateway and caller are known. */
export interface Arrival {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly context: RequestContext;
  readonly gateway: Gateway;
  readonly caller: Caller;
  /** The caller's part of the memory for bodies. */
  readonly memory: MemoryShare;
  /** `performance.now()` when the headers had arrived. */
  readonly startedAt: number;
}

/** The steps that may answer a call. */
export interface CallPlan {
  readonly options: CallOptions;
  readonly steps: readonly Step[];
  /** Steps behind those in `steps`. */
  readonly moreSteps?: StepSource | undefined;
  /** Whether the response names the step that it came from. */
  readonly showsStep: boolean;
  /** Headers about the route, for every response: name, value, … */
  readonly routeHeaders?: readonly string[] | undefined;
  /** Whether the response names the model that answered. */
  readonly showsModel?: boolean | undefined;
  /** Budgets of the route; undefined when the route has none. */
  readonly budgets?: readonly RouteBudget[] | undefined;
  /** Called when a call that went upstream has ended, with the beginning of its response. */
  readonly onEnded?: ((outcome: CallOutcome) => void) | undefined;
}

export interface PlannedCall extends Arrival, CallPlan {
  /** The guardrails of the call; absent when no rule applies. */
  readonly guard?: CallGuard;
}

/** A call that is counted and goes upstream, or to the cache. */
export interface CallStart extends PlannedCall {
  readonly id: string;
  readonly createdAt: number;
  readonly cacheStatus: "MISS" | null;
  readonly logDetail: LogDetail;
  /** Settles the call under its limits; null for a call without limits. */
  readonly account: CallAccount | null;
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

/** Not a registered status: nginx logs it when the client disconnects before the response. */
export const CLIENT_CLOSED = 499;

/** What is known of a call when it has ended. */
export interface CallOutcome {
  /** The step that answered, or the last one that was tried. */
  readonly step: Step;
  /** Its position in the caller's list. */
  readonly place: number;
  readonly status: number;
  readonly isComplete: boolean;
  /** False if a response with a success status is not what was asked for (`reliability/answer-check.ts`). */
  readonly isAnswer: boolean;
  /** The client disconnected before the end. */
  readonly isAbandoned: boolean;
  readonly isCached: boolean;
  readonly head: ResponseHead | null;
  readonly spend: CallSpend;
  readonly responseBytes: number;
  /** The response body, or its beginning. */
  readonly body: Buffer;
  readonly isBodyWhole: boolean;
  /** Milliseconds from the headers of the request to the first byte of the response; null when there was none. */
  readonly firstByteMs: number | null;
  /** Attempts before and beside the one that answered; null when there were none. */
  readonly otherAttempts: readonly AttemptReport[] | null;
  /** `performance.now()` when the last attempt was sent; null when there was none. */
  readonly attemptStartedAt: number | null;
}

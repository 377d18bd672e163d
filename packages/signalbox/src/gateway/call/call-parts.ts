/** What every call needs from the rest of the gateway. */
import type { CallSink, CallUsage } from "../../storage/ports/call-log.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { UpstreamClient } from "../upstream/upstream-client.ts";
import type { UsageDialect, UsageTap } from "../usage/usage-tap.ts";
import type { BodyBudget } from "./body-budget.ts";

export interface CallParts {
  readonly client: UpstreamClient;
  readonly sink: CallSink;
  readonly metrics: GatewayMetrics;
  readonly createTap: (dialect: UsageDialect, responseContentType: string, wantsModel: boolean) => UsageTap;
  /** US dollars; null when the price is unknown. */
  readonly costOf: (provider: string, model: string, usage: CallUsage) => number | null;
  /** What bodies may take of the memory. */
  readonly budget: BodyBudget;
  /** How much of each body goes into the log. */
  readonly payloadBytes: number;
}

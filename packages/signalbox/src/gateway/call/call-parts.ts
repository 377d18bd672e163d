/** What every call needs from the rest of the gateway. */
import type { CallSink, CallUsage } from "../../engines/call-log/index.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { UpstreamClient, UsageDialect, UsageTap } from "../../engines/relay/index.ts";
import type { MemoryBudget } from "../../engines/http-server/index.ts";

export interface CallParts {
  readonly client: UpstreamClient;
  readonly sink: CallSink;
  readonly metrics: GatewayMetrics;
  readonly createTap: (dialect: UsageDialect, responseContentType: string, wantsModel: boolean) => UsageTap;
  /** US dollars; null when the price is unknown. */
  readonly costOf: (provider: string, model: string, usage: CallUsage) => number | null;
  /** What bodies may take of the memory. */
  readonly budget: MemoryBudget;
  /** How much of each body goes into the log. */
  readonly payloadBytes: number;
}

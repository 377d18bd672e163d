/** A call as it is accepted, and the parts of the gateway that run it. */
import type { CallSink } from "../../engines/call-log/index.ts";
import type { HttpRequest, HttpResponse, MemoryBudget } from "../../engines/http-server/index.ts";
import type { UpstreamClient } from "../../engines/relay/index.ts";
import type { ErrorDialect } from "../../http/render-error.ts";
import type { PriceTable } from "../limits/price-table.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { CallOptions } from "../plan/call-options.ts";
import type { Step } from "../plan/plan-step.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";

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
  readonly tokenId: string | null;
  readonly createdAt: number;
  /** `performance.now()` when the headers had arrived. */
  readonly startedAt: number;
  readonly cacheStatus: "MISS" | null;
  readonly logDetail: LogDetail;
}

/** What the call log stores of a call: no row, a row, or a row and the bodies. */
export type LogDetail = "none" | "row" | "bodies";

export interface CallParts {
  readonly client: UpstreamClient;
  readonly callLog: CallSink;
  readonly gateways: Pick<Gateways, "find">;
  readonly metrics: GatewayMetrics;
  readonly prices: PriceTable;
  /** Memory for bodies. */
  readonly budget: MemoryBudget;
  /** How many bytes of each body the log stores. */
  readonly payloadBytes: number;
}

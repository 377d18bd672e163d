/** Calls, errors, cost and latency of the time range by model, over time and in total, and in total for the period before. */
import type { TimeRange } from "../../components/time-range/time-range.ts";
import type { Resource } from "../../http/use-resource.ts";
import { totalOf, type UsageTotal } from "../gateways/analytics/usage-total.ts";
import type { Usage } from "../gateways/analytics/usage.ts";
import { useUsage as useUsageByModel } from "../gateways/analytics/use-usage.ts";
import type { Access } from "./use-access.ts";

export interface RangeUsage {
  /** One row for each time and model with calls. */
  readonly rows: readonly Usage[];
  readonly range: TimeRange;
  /** Null without calls. */
  readonly total: UsageTotal | null;
  readonly before: UsageTotal | null;
}

export function useUsage({ usage, gatewayId }: Access, range: TimeRange): Resource<RangeUsage> {
  const found = useUsageByModel(gatewayId, range, "model", usage);
  const { value } = found;
  return {
    ...found,
    value:
      value === undefined
        ? undefined
        : {
            rows: value.rows,
            range: value.range,
            total: withCalls(totalOf(value.rows)),
            before: value.before === null ? null : withCalls(value.before),
          },
  };
}

function withCalls(total: UsageTotal): UsageTotal | null {
  return total.calls === 0 ? null : total;
}

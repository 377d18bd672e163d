/** Calls, errors, cost and latency of the time range, over time and in total, and in total for the period before. */
import { bucketAt, rangeBefore, type TimeRange } from "../../components/time-range/time-range.ts";
import { read, withQuery } from "../../http/api.ts";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccountPaths } from "../../session/session.ts";
import { bucketTotals } from "../gateways/analytics/to-series.ts";
import type { Usage } from "../gateways/analytics/usage.ts";
import { totalOf, type UsageTotal } from "../gateways/analytics/usage-total.ts";
import type { Access } from "./use-access.ts";

const REFRESH_MS = 10_000;
/** Minutes are added up from the rows of calls, which costs more. */
const REFRESH_MINUTES_MS = 30_000;

export interface RangeUsage {
  /** One total for each bucket of the range; null where there were no calls. */
  readonly rows: readonly (UsageTotal | null)[];
  /** Null without calls. */
  readonly total: UsageTotal | null;
  readonly before: UsageTotal | null;
}

export function useUsage({ usage, gatewayId }: Access, range: TimeRange): Resource<RangeUsage> {
  const { api } = useAccountPaths();
  const pathOf = ({ from, to }: { readonly from: number; readonly to: number }, groupBy?: string) =>
    withQuery(api("ai-gateway", "usage"), {
      gateway_id: gatewayId,
      start: new Date(from).toISOString(),
      end: new Date(to).toISOString(),
      group_by: groupBy,
    });
  // The first bucket is read as a whole, so that its bar is not cut.
  const whole = { ...range, from: bucketAt(range.from, range.bucketMs) };
  const path = pathOf(whole, range.step);
  // Without a time in `group_by`, whole hours are added up.
  const beforePath = pathOf(rangeBefore(whole), range.step === "minute" ? "minute" : undefined);
  return useResource(
    usage ? path : null,
    async (signal) => {
      const [rows, before] = await Promise.all([
        read<Usage[]>(path, signal),
        read<Usage[]>(beforePath, signal),
      ]);
      return {
        rows: bucketTotals(rows, range),
        total: withCalls(totalOf(rows)),
        before: withCalls(totalOf(before)),
      };
    },
    {
      refreshMs: range.step === "minute" ? REFRESH_MINUTES_MS : REFRESH_MS,
      // The range moves on; the figures stay if the next part cannot be read.
      identity: `${gatewayId ?? ""} ${range.name}`,
    },
  );
}

function withCalls(total: UsageTotal): UsageTotal | null {
  return total.calls === 0 ? null : total;
}

import { bucketAt, rangeBefore, type TimeRange } from "../../../components/time-range/time-range.ts";
import { read, withQuery } from "../../../http/api.ts";
import { type Resource, useResource } from "../../../http/use-resource.ts";
import { useAccountPaths } from "../../../session/session.ts";
import type { Breakdown } from "./to-series.ts";
import type { Usage } from "./usage.ts";
import { totalOf, type UsageTotal } from "./usage-total.ts";

const REFRESH_MS = 10_000;
/** Minutes are added up from the rows of calls, which costs more. */
const REFRESH_MINUTES_MS = 30_000;

export interface UsageOverTime {
  readonly rows: readonly Usage[];
  /** The period of the same length before; null if it could not be read. */
  readonly before: UsageTotal | null;
  /** The range and the breakdown that the rows belong to: the selected ones may already be others. */
  readonly range: TimeRange;
  readonly breakdown: Breakdown;
}

/** Usage over time of one gateway, or of all gateways if `gatewayId` is null, with the total of the period before. `isRead`: the session may read it. */
export function useUsage(
  gatewayId: string | null,
  range: TimeRange,
  breakdown: Breakdown,
  isRead = true,
): Resource<UsageOverTime> {
  const { api } = useAccountPaths();
  const pathOf = ({ from, to }: { from: number; to: number }, groupBy: string) =>
    withQuery(api("ai-gateway", "usage"), {
      gateway_id: gatewayId ?? "",
      start: new Date(from).toISOString(),
      end: new Date(to).toISOString(),
      group_by: groupBy,
    });
  // The first bucket is read as a whole, so that its bar is not cut.
  const from = bucketAt(range.from, range.bucketMs);
  const path = pathOf({ from, to: range.to }, `${range.step},${breakdown}`);
  const beforePath = pathOf(rangeBefore({ from, to: range.to }), range.step === "minute" ? "minute" : "");
  return useResource(
    isRead ? path : null,
    async (signal) => {
      const [rows, before] = await Promise.all([
        read<Usage[]>(path, signal),
        read<Usage[]>(beforePath, signal).catch(() => null),
      ]);
      return { rows, before: before === null ? null : totalOf(before), range, breakdown };
    },
    {
      refreshMs: range.step === "minute" ? REFRESH_MINUTES_MS : REFRESH_MS,
      // The range moves on; the charts stay if the next part cannot be read.
      identity: `${gatewayId ?? ""} ${range.name} ${breakdown}`,
    },
  );
}

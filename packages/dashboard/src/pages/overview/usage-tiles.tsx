import { StatTile, StatTiles } from "../../components/stat-tile.tsx";
import { count, duration, money, share } from "../../format/number.ts";
import { useAccountPaths } from "../../session/session.ts";
import type { UsageTotal } from "../gateways/analytics/usage-total.ts";
import type { Access } from "./use-access.ts";
import type { RangeUsage } from "./use-usage.ts";

interface UsageTilesProps {
  readonly usage: RangeUsage;
  readonly access: Access;
  /** Name of the time range, for the links. */
  readonly range: string;
}

/** The figures of the gateways. Where there were no calls, a count is zero, but a rate or a latency has no value. */
export function UsageTiles({ usage: { rows, total, before }, access, range }: UsageTilesProps) {
  const { page } = useAccountPaths();
  const { gatewayId } = access;
  const analytics = `${gatewayId === null ? page("usage") : page("gateways", gatewayId, "analytics")}?range=${range}`;
  const series = (value: (row: UsageTotal) => number | null, ofNone: number | null) =>
    rows.map((row) => (row === null || row.calls === 0 ? ofNone : value(row)));
  const errorRate = (of: Pick<UsageTotal, "errors" | "calls"> | null) =>
    of === null ? null : of.errors / of.calls;
  return (
    <StatTiles label="Gateways">
      <StatTile
        label="Calls"
        value={count(total?.calls ?? 0)}
        note={total === null ? undefined : `${share(total.cached, total.calls)} cached `}
        change={{ now: total?.calls ?? 0, before: before?.calls ?? null }}
        spark={series((row) => row.calls, 0)}
        to={analytics}
      />
      <StatTile
        label="Error rate"
        value={total === null ? "–" : share(total.errors, total.calls)}
        note={
          total === null ? undefined : total.errors === 1 ? "one error " : `${count(total.errors)} errors `
        }
        change={{ now: errorRate(total), before: errorRate(before), goodWhen: "lower" }}
        spark={series(errorRate, null)}
        to={analytics}
      />
      <StatTile
        label="Cost"
        value={total === null ? "$0" : money(total.cost)}
        note={total === null ? undefined : `${count(total.tokens_in + total.tokens_out)} tokens `}
        change={{ now: total?.cost ?? 0, before: before?.cost ?? null }}
        spark={series((row) => row.cost, 0)}
        to={analytics}
      />
      <StatTile
        label="p95 latency"
        value={duration(total?.duration_p95)}
        note={total === null ? undefined : `median ${duration(total.duration_p50)} `}
        change={{
          now: total?.duration_p95 ?? null,
          before: before?.duration_p95 ?? null,
          goodWhen: "lower",
        }}
        spark={series((row) => row.duration_p95, null)}
        to={analytics}
      />
    </StatTiles>
  );
}

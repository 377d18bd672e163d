import { StatTile, StatTiles } from "../../../components/stat-tile.tsx";
import { count, duration, money, share } from "../../../format/number.ts";
import { totalOf, type UsageTotal } from "./usage-total.ts";
import type { Usage } from "./usage.ts";

interface UsageTilesProps {
  readonly rows: readonly Usage[];
  readonly before: UsageTotal | null;
  /** Of each bucket of the range; null where there were no calls. */
  readonly buckets: readonly (UsageTotal | null)[];
}

/** The totals of a period, compared with the period before. */
export function UsageTiles({ rows, before, buckets }: UsageTilesProps) {
  const now = totalOf(rows);
  const change = (value: (total: UsageTotal) => number | null, goodWhen?: "higher" | "lower") => ({
    now: value(now),
    before: before === null ? null : value(before),
    ...(goodWhen === undefined ? {} : { goodWhen }),
  });
  /** Where there were no calls, a sum is zero, but a rate or a latency has no value. */
  const spark = (value: (total: UsageTotal) => number | null, ofNone: number | null = null) =>
    buckets.map((total) => (total === null ? ofNone : value(total)));
  const errorRate = ({ errors, calls }: UsageTotal) => (calls === 0 ? null : errors / calls);
  const hitRate = ({ cached, calls }: UsageTotal) => (calls === 0 ? null : cached / calls);
  return (
    <StatTiles label="Totals">
      <StatTile
        label="Calls"
        value={count(now.calls)}
        change={change(({ calls }) => calls)}
        spark={spark(({ calls }) => calls, 0)}
      />
      <StatTile
        label="Error rate"
        value={share(now.errors, now.calls)}
        note={`${count(now.errors)} failed`}
        change={change(errorRate, "lower")}
        spark={spark(({ errors }) => errors, 0)}
        {...(now.errors > 0 && now.errors / now.calls >= 0.05 ? { tone: "bad" as const } : {})}
      />
      <StatTile
        label="Cost"
        value={money(now.cost)}
        change={change(({ cost }) => cost)}
        spark={spark(({ cost }) => cost, 0)}
      />
      <StatTile
        label="Tokens"
        value={count(now.tokens_in + now.tokens_out)}
        note={`${count(now.tokens_in)} → ${count(now.tokens_out)}`}
        change={change((total) => total.tokens_in + total.tokens_out)}
        spark={spark((total) => total.tokens_in + total.tokens_out, 0)}
      />
      <StatTile
        label="Latency"
        value={duration(now.duration_p50)}
        note={`p50; p95 ${duration(now.duration_p95)}`}
        change={change(({ duration_p50 }) => duration_p50, "lower")}
        spark={spark(({ duration_p50 }) => duration_p50)}
      />
      <StatTile
        label="Cache hits"
        value={share(now.cached, now.calls)}
        note={`${count(now.cached)} calls`}
        change={change(hitRate, "higher")}
        spark={spark(hitRate)}
      />
    </StatTiles>
  );
}

/** What the rule measures, over the last day, with its threshold as a line: whether it would be too loud or never heard. */
import { useMemo } from "react";
import type { AlertMetric, DeliveryStep } from "@signalbox/client";
import { TimeChart } from "../../components/chart/time-chart.tsx";
import { plural } from "../../format/number.ts";
import { hourTime, minuteTime, spanText } from "../../format/time.ts";
import { read, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccountPaths } from "../../session/session.ts";
import type { Usage } from "../gateways/analytics/usage.ts";
import {
  callHistory,
  DAY_MS,
  deliveryHistory,
  firings,
  isCallMetric,
  type MetricHistory,
  stepOf,
  windowsOf,
} from "./alert-history.ts";
import { METRIC_TITLES, showAmount } from "./alert-metrics.ts";

interface AlertPreviewProps {
  readonly metric: AlertMetric;
  readonly threshold: number;
  readonly windowSeconds: number;
  readonly minCalls: number;
  readonly gatewayId: string;
  readonly provider: string;
  readonly source: string;
}

export function AlertPreview(props: AlertPreviewProps) {
  const { metric, threshold, windowSeconds } = props;
  const history = useHistory(props);
  const { value } = history;
  const series = useMemo(
    () =>
      value === undefined || value === null
        ? []
        : [
            { name: METRIC_TITLES[metric], values: value.values },
            ...(threshold > 0
              ? [{ name: "Threshold", tone: "bad" as const, values: value.times.map(() => threshold) }]
              : []),
          ],
    [value, metric, threshold],
  );
  if (value === undefined || value === null || !(threshold > 0)) return null;
  const count = firings(value.values, threshold);
  const asked = windowSeconds * 1000;
  return (
    <div className="alert-preview">
      <p role="status">
        {count === 0 ? (
          <>Would not have fired in the last day.</>
        ) : (
          <>
            Would have fired <strong>{plural(count, "time")}</strong> in the last day.
          </>
        )}
        {value.stepMs !== asked && (
          <span className="muted small"> Measured in windows of {spanText(value.stepMs / 1000)}.</span>
        )}
      </p>
      <TimeChart
        title="Last 24 hours"
        unit={`per ${spanText(value.stepMs / 1000)}`}
        kind="lines"
        times={value.times}
        bucketMs={value.stepMs}
        series={series}
        format={(amount) => showAmount(metric, amount)}
        formatTime={minuteTime}
        formatTick={hourTime}
      />
    </div>
  );
}

/** Null for a metric without a stored history. */
function useHistory(props: AlertPreviewProps) {
  const { metric, windowSeconds, minCalls, gatewayId, provider, source } = props;
  const { api } = useAccountPaths();
  const hasHistory = isCallMetric(metric) || metric === "failed_deliveries";
  const key = [metric, windowSeconds, minCalls, gatewayId, provider, source].join(" ");
  return useResource<MetricHistory | null>(
    hasHistory && windowSeconds >= 60 ? `alert history ${api()} ${key}` : null,
    async (signal) => {
      const now = Date.now();
      if (!isCallMetric(metric)) {
        const stepMs = Math.max(stepOf(windowSeconds, false), 120_000);
        const times = windowsOf(now, stepMs);
        const path = withQuery(api("webhooks", "deliveries", "histogram"), {
          source,
          since: new Date(times[0] ?? now - DAY_MS).toISOString(),
          until: new Date(now).toISOString(),
          step_seconds: stepMs / 1000,
        });
        return deliveryHistory(await read<DeliveryStep[]>(path, signal), times, stepMs);
      }
      const readUsage = async (areHours: boolean): Promise<MetricHistory> => {
        const stepMs = stepOf(windowSeconds, areHours);
        const times = windowsOf(now, stepMs);
        const path = withQuery(api("ai-gateway", "usage"), {
          gateway_id: gatewayId,
          start: new Date(times[0] ?? now - DAY_MS).toISOString(),
          end: new Date(now).toISOString(),
          group_by: `${areHours ? "hour" : "minute"}${provider === "" ? "" : ",provider"}`,
        });
        const rows = await read<Usage[]>(path, signal);
        const own = provider === "" ? rows : rows.filter((row) => row.provider === provider);
        return callHistory(own, metric, { times, stepMs, minCalls });
      };
      if (windowSeconds % 3600 === 0) return readUsage(true);
      // Minutes are added up from the rows of calls, within a budget: an account with too many has sums by hour.
      return readUsage(false).catch(() => readUsage(true));
    },
    { identity: `${metric} ${gatewayId} ${provider} ${source}` },
  );
}

/** The text of a notice: the body of a signed webhook, or a message in Slack's format. */
import type { AlertReceiver, AlertRule, AlertSettings } from "./alert-rule.ts";

export type NoticeKind = "firing" | "resolved" | "test";

export function noticeBody(
  receiver: Pick<AlertReceiver, "type">,
  kind: NoticeKind,
  rule: AlertRule,
  now: number,
): string {
  const { settings, state } = rule;
  if (receiver.type === "slack") return JSON.stringify({ text: slackText(kind, rule) });
  return JSON.stringify({
    type: `alert.${kind}`,
    timestamp: new Date(now).toISOString(),
    data: {
      alert_id: rule.id,
      account_id: rule.accountId,
      name: settings.name,
      metric: settings.metric,
      value: state.value,
      threshold: settings.threshold,
      window: settings.window,
      gateway_id: settings.gateway_id,
      provider: settings.provider,
      source: settings.source,
      ...(settings.guardrail === undefined ? {} : { guardrail: settings.guardrail }),
      since: state.since === null ? null : new Date(state.since).toISOString(),
    },
  });
}

function slackText(kind: NoticeKind, { settings, state, accountId }: AlertRule): string {
  const where = [settings.gateway_id, settings.provider, settings.source].filter((part) => part !== null);
  const place = [`account ${accountId}`, ...where].join(", ");
  const what = `${settings.metric.replaceAll("_", " ")} ${show(settings, state.value)} (limit ${show(settings, settings.threshold)} in ${settings.window} s)`;
  const sign = kind === "firing" ? ":rotating_light:" : kind === "resolved" ? ":white_check_mark:" : ":bell:";
  return `${sign} *${escapeSlack(settings.name)}* ${kind}: ${what}; ${escapeSlack(place)}`;
}

function show({ metric }: AlertSettings, value: number | null): string {
  if (value === null) return "unknown";
  if (metric === "error_rate") return `${(value * 100).toFixed(1)} %`;
  if (metric === "latency_p95") return `${value.toFixed(2)} s`;
  return metric === "spend" ? `$${value.toFixed(4)}` : String(value);
}

/** Slack reads links and mentions between angle brackets: a name must not address a channel. */
function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

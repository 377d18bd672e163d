/** Reports what the guardrails found in a call, or in a session, to metrics and alerts. */
import type { AlertFeedSlot } from "../../contracts/alert-feed.ts";
import type { Findings } from "../guardrails/findings.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Gateway } from "../settings/gateway.ts";

interface Receivers {
  readonly metrics: Pick<GatewayMetrics, "guarded">;
  readonly alertFeed: AlertFeedSlot;
}

export function noteFindings({ metrics, alertFeed }: Receivers, gateway: Gateway, { all }: Findings): void {
  if (all.length === 0) return;
  metrics.guarded(all);
  alertFeed.current?.guardrails(gateway.accountId, gateway.id, [...new Set(all.map(({ rule }) => rule))]);
}

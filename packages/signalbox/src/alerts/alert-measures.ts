/** Measures what the areas report, in windows in memory: one for each rule. */
import type { AlertFeed, EndedCall } from "../contracts/alert-feed.ts";
import type { Clock } from "../core/clock.ts";
import type { AlertRule } from "./alert-rule.ts";
import type { AlertRules } from "./alert-rules.ts";
import { SlidingWindow, type Totals } from "./sliding-window.ts";

export interface Watched {
  readonly rule: AlertRule;
  readonly window: SlidingWindow;
  /** Since when this process has measured. */
  readonly observedSince: number;
}

const CALL_METRICS: ReadonlySet<string> = new Set(["error_rate", "latency_p95", "spend"]);

export class AlertMeasures implements AlertFeed {
  readonly #rules: AlertRules;
  readonly #clock: Clock;
  /** By rule. */
  readonly #watched = new Map<string, Watched>();
  /** By account: calls look for the rules of their own account. */
  #byAccount = new Map<string, readonly Watched[]>();

  constructor(rules: AlertRules, clock: Clock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  /** Follows the rules: a changed rule measures anew. */
  follow(): void {
    const live = new Set<string>();
    for (const rule of this.#rules.all()) {
      live.add(rule.id);
      const known = this.#watched.get(rule.id);
      if (known !== undefined && known.rule.modifiedAt === rule.modifiedAt) continue;
      const window = new SlidingWindow(rule.settings.window * 1000);
      this.#watched.set(rule.id, { rule, window, observedSince: this.#clock.now() });
    }
    for (const id of this.#watched.keys()) if (!live.has(id)) this.#watched.delete(id);
    this.#byAccount = Map.groupBy(
      [...this.#watched.values()].filter(({ rule }) => rule.settings.enabled),
      ({ rule }) => rule.accountId,
    );
  }

  /** The rules that are enabled. */
  watched(): readonly Watched[] {
    return [...this.#byAccount.values()].flat();
  }

  call({ accountId, gatewayId, provider, isFailed, durationMs, cost }: EndedCall): void {
    const all = this.#byAccount.get(accountId);
    if (all === undefined) return;
    const now = this.#clock.now();
    for (const { rule, window } of all) {
      const { metric, gateway_id: ownGateway, provider: ownProvider } = rule.settings;
      if (!CALL_METRICS.has(metric)) continue;
      if (ownGateway !== null && ownGateway !== gatewayId) continue;
      if (ownProvider !== null && ownProvider !== provider) continue;
      window.add(now, { isFailed, amount: cost, seconds: durationMs / 1000 });
    }
  }

  guardrails(accountId: string, gatewayId: string, found: readonly string[]): void {
    for (const { rule, window } of this.#byAccount.get(accountId) ?? []) {
      const { metric, gateway_id: ownGateway, guardrail } = rule.settings;
      if (metric !== "guardrails") continue;
      if (ownGateway !== null && ownGateway !== gatewayId) continue;
      if (guardrail !== undefined && !found.includes(guardrail)) continue;
      window.add(this.#clock.now(), { isFailed: true, amount: 0, seconds: null });
    }
  }

  delivery(accountId: string, source: string, isFailed: boolean): void {
    for (const { rule, window } of this.#byAccount.get(accountId) ?? []) {
      const { metric, source: own } = rule.settings;
      if (metric !== "failed_deliveries" || (own !== null && own !== source)) continue;
      window.add(this.#clock.now(), { isFailed, amount: 0, seconds: null });
    }
  }

  routePaused(accountId: string, source: string): void {
    this.#count("paused_routes", accountId, source);
  }

  issueOpened(accountId: string, source: string): void {
    this.#count("webhook_issues", accountId, source);
  }

  #count(counted: "paused_routes" | "webhook_issues", accountId: string, source: string): void {
    for (const { rule, window } of this.#byAccount.get(accountId) ?? []) {
      const { metric, source: own } = rule.settings;
      if (metric !== counted || (own !== null && own !== source)) continue;
      window.add(this.#clock.now(), { isFailed: true, amount: 0, seconds: null });
    }
  }

  deadLetter(accountId: string): void {
    for (const { rule, window } of this.#byAccount.get(accountId) ?? []) {
      if (rule.settings.metric !== "dead_letters") continue;
      window.add(this.#clock.now(), { isFailed: true, amount: 0, seconds: null });
    }
  }
}

/** What the rule compares with its threshold; null when there was too little to measure. */
export function valueOf({ settings }: AlertRule, { count, failed, sum, p95 }: Totals): number | null {
  const hasEnough = count >= settings.min_calls;
  switch (settings.metric) {
    case "error_rate":
      return hasEnough ? failed / count : null;
    case "latency_p95":
      return hasEnough ? p95 : null;
    case "spend":
      return sum;
    case "guardrails":
    case "failed_deliveries":
    case "paused_routes":
    case "webhook_issues":
    case "dead_letters":
      return failed;
  }
}

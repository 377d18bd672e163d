/** Measures what the areas report, and checks every rule at intervals. Windows are in memory; states and notices are in the database. */
import type { AlertFeed, EndedCall } from "../contracts/alert-feed.ts";
import type { Clock } from "../core/clock.ts";
import { sql } from "../core/sql.ts";
import type { Database } from "../database/database.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { AlertRule, AlertState } from "./alert-rule.ts";
import type { AlertRules } from "./alert-rules.ts";
import { decide } from "./decide.ts";
import type { NoticeOutbox } from "./notice-outbox.ts";
import { SlidingWindow } from "./sliding-window.ts";

export interface AlertChecksParts {
  readonly rules: AlertRules;
  readonly outbox: NoticeOutbox;
  readonly database: Database;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Watched {
  readonly rule: AlertRule;
  readonly window: SlidingWindow;
  readonly observedSince: number;
}

const CALL_METRICS: ReadonlySet<string> = new Set(["error_rate", "latency_p95", "spend"]);

export class AlertChecks implements AlertFeed {
  readonly #parts: AlertChecksParts;
  /** By rule. */
  readonly #watched = new Map<string, Watched>();
  /** By account: calls look for the rules of their own account. */
  #byAccount = new Map<string, readonly Watched[]>();
  #isChecking = false;

  constructor(parts: AlertChecksParts) {
    this.#parts = parts;
  }

  /** Follows the rules: a changed rule measures anew. */
  follow(): void {
    const { rules, clock } = this.#parts;
    const live = new Set<string>();
    for (const rule of rules.all()) {
      live.add(rule.id);
      const known = this.#watched.get(rule.id);
      if (known !== undefined && known.rule.modifiedAt === rule.modifiedAt) continue;
      const window = new SlidingWindow(rule.settings.window * 1000);
      this.#watched.set(rule.id, { rule, window, observedSince: clock.now() });
    }
    for (const id of this.#watched.keys()) if (!live.has(id)) this.#watched.delete(id);
    this.#byAccount = Map.groupBy(
      [...this.#watched.values()].filter(({ rule }) => rule.settings.enabled),
      ({ rule }) => rule.accountId,
    );
  }

  call({ accountId, gatewayId, provider, isFailed, durationMs, cost }: EndedCall): void {
    const all = this.#byAccount.get(accountId);
    if (all === undefined) return;
    const now = this.#parts.clock.now();
    for (const { rule, window } of all) {
      const { metric, gateway_id: ownGateway, provider: ownProvider } = rule.settings;
      if (!CALL_METRICS.has(metric)) continue;
      if (ownGateway !== null && ownGateway !== gatewayId) continue;
      if (ownProvider !== null && ownProvider !== provider) continue;
      window.add(now, { isFailed, amount: cost, seconds: durationMs / 1000 });
    }
  }

  delivery(accountId: string, source: string, isFailed: boolean): void {
    for (const { rule, window } of this.#byAccount.get(accountId) ?? []) {
      const { metric, source: own } = rule.settings;
      if (metric !== "failed_deliveries" || (own !== null && own !== source)) continue;
      window.add(this.#parts.clock.now(), { isFailed, amount: 0, seconds: null });
    }
  }

  deadLetter(accountId: string): void {
    for (const { rule, window } of this.#byAccount.get(accountId) ?? []) {
      if (rule.settings.metric !== "dead_letters") continue;
      window.add(this.#parts.clock.now(), { isFailed: true, amount: 0, seconds: null });
    }
  }

  /** Checks every rule and sends what is due. Errors are logged: the next check tries again. */
  async check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      for (const watched of this.#watched.values())
        if (watched.rule.settings.enabled) await this.#checkOne(watched);
      await this.#parts.outbox.sendDue();
    } catch (error) {
      this.#parts.logger.error({ err: error }, "alerts could not be checked; trying again");
    } finally {
      this.#isChecking = false;
    }
  }

  async #checkOne({ rule: { id, settings }, window, observedSince }: Watched): Promise<void> {
    const { rules, clock, database, outbox } = this.#parts;
    const rule = rules.byId(id);
    if (rule === undefined) return;
    const now = clock.now();
    const { state, notice } = decide({
      settings,
      state: rule.state,
      value: valueOf(rule, window, now),
      now,
      observedSince,
    });
    if (notice === null && !isChange(rule.state, state)) {
      rules.setState(id, state);
      return;
    }
    const changed = { ...rule, state };
    await database.transaction(async (tx) => {
      await tx.run(sql`UPDATE alert_rule SET state = ${JSON.stringify(state)} WHERE id = ${id}`);
      if (notice !== null) await outbox.add(tx, changed, notice);
    });
    // Not before the commit: a failed one is decided again.
    rules.setState(id, state);
  }
}

function isChange(before: AlertState, after: AlertState): boolean {
  return (
    before.status !== after.status || before.isReported !== after.isReported || before.since !== after.since
  );
}

function valueOf({ settings }: AlertRule, window: SlidingWindow, now: number): number | null {
  const { count, failed, sum, p95 } = window.totals(now);
  const hasEnough = count >= settings.min_calls;
  switch (settings.metric) {
    case "error_rate":
      return hasEnough ? failed / count : null;
    case "latency_p95":
      return hasEnough ? p95 : null;
    case "spend":
      return sum;
    case "failed_deliveries":
    case "dead_letters":
      return failed;
  }
}

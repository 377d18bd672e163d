/** Budgets of LiteLLM's configuration as limits of the account. */
import type { SpendRule } from "@signalbox/client";
import { slugOf } from "./litellm-providers.ts";

type Fields = Readonly<Record<string, unknown>>;

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const MAX_WINDOW_S = 366 * 86_400;

export function toBudgets(settings: Fields): {
  readonly limits: readonly SpendRule[];
  readonly notes: readonly string[];
} {
  const limits: SpendRule[] = [];
  const notes: string[] = [];
  const add = (id: string, amount: unknown, duration: unknown, provider?: string) => {
    const dollars = typeof amount === "string" && amount.trim() !== "" ? Number(amount) : amount;
    const window = toWindow(duration);
    if (typeof dollars !== "number" || !(dollars > 0) || window === undefined) {
      notes.push(`${id}: the budget or its period cannot be taken over`);
      return;
    }
    limits.push({
      id,
      enabled: true,
      limitType: "cost",
      limit: dollars,
      window,
      ...(provider === undefined ? {} : { provider: { mode: "filter", values: [provider] } }),
    });
  };
  const { max_budget: total, budget_duration: period, provider_budget_config: byProvider } = settings;
  if (total !== undefined) add("litellm-budget", total, period);
  if (typeof byProvider === "object" && byProvider !== null) {
    for (const [name, given] of Object.entries(byProvider)) {
      const slug = slugOf(name);
      const {
        budget_limit: limit,
        max_budget: max,
        time_period: time,
        budget_duration: duration,
      } = (given ?? {}) as Fields;
      if (slug === undefined) notes.push(`provider_budget_config ${name}: the provider is not known`);
      else add(`litellm-${slug}`, limit ?? max, time ?? duration, slug);
    }
  }
  return { limits, notes };
}

/** `30d`, `1mo`, `3600s`; undefined for another form. A budget without a period never comes back. */
export function toWindow(duration: unknown): SpendRule["window"] | undefined {
  if (duration === undefined || duration === null) return null;
  const match = typeof duration === "string" ? /^(\d{1,9})(mo|[smhdw])$/.exec(duration.trim()) : null;
  if (match === null) return undefined;
  const [, count = "", unit = ""] = match;
  if (unit === "mo") return count === "1" ? "month" : undefined;
  const seconds = Number(count) * (SECONDS[unit] ?? 0);
  return seconds >= 1 && seconds <= MAX_WINDOW_S ? seconds : undefined;
}

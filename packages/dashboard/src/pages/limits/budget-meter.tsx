import type { BudgetState } from "@signalbox/client";
import { amount } from "./amount.ts";

/** How much of a limit is used, with what is left. */
export function BudgetMeter({ budget }: { readonly budget: BudgetState }) {
  const { type, limit, used, reserved, remaining } = budget;
  return (
    <div className="budget">
      <meter
        min={0}
        max={limit === 0 ? 1 : limit}
        low={limit * 0.8}
        high={limit * 0.95}
        optimum={0}
        value={limit === 0 ? 1 : Math.min(limit, used + reserved)}
        aria-label={`Used of ${budget.rule}`}
      />
      <span className="small nowrap">
        <strong>{amount(type, remaining)}</strong> of {amount(type, limit)} left
      </span>
    </div>
  );
}

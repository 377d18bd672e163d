import { ErrorNotice } from "../../components/error-notice.tsx";
import { useResource } from "../../http/use-resource.ts";
import { useAccount } from "../../session/session.ts";
import { BudgetMeter } from "../limits/budget-meter.tsx";
import { windowText } from "../limits/period.ts";
import type { Token } from "./token.ts";

/** What is left of each budget of a token, in a cell of the list. */
export function TokenLimits({ token }: { readonly token: Token }) {
  const account = useAccount();
  const hasBudget = token.budgets.length > 0 || token.soft_budget !== null;
  const budgets = useResource(hasBudget ? `${token.id} ${JSON.stringify(token.budgets)}` : null, (signal) =>
    account.budgets.state({ tokenId: token.id }, { signal }),
  );
  if (!hasBudget) return <span className="muted">no budget</span>;
  if (budgets.error !== null) return <ErrorNotice error={budgets.error} onRetry={budgets.reload} />;
  return (
    <div className="budgets">
      {budgets.value
        ?.filter(({ type }) => type === "cost")
        .map((budget) => (
          <div key={budget.rule}>
            <span className="muted small">{windowText(budget.window)}</span>
            <BudgetMeter budget={budget} />
          </div>
        ))}
    </div>
  );
}

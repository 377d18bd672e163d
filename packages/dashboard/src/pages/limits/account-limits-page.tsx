import type { SpendRule } from "@signalbox/client";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useHasPermission } from "../../session/session.ts";
import { BudgetTable } from "./budget-table.tsx";
import { RulesPanel } from "./rules-panel.tsx";

const REFRESH_MS = 5000;

/** The limits of the account over all of its gateways. */
export function AccountLimitsPage() {
  const account = useAccount();
  const canEdit = useHasPermission("gateway.edit");
  const rules = useResource(`limits ${account.id}`, (signal) => account.budgets.limits({ signal }));
  const budgets = useResource(`budgets ${account.id}`, (signal) => account.budgets.state({}, { signal }), {
    refreshMs: REFRESH_MS,
  });
  const reload = () => {
    rules.reload();
    budgets.reload();
  };
  const save = async (change: (rules: readonly SpendRule[]) => readonly SpendRule[]) => {
    await account.budgets.changeLimits(change);
    reload();
  };
  return (
    <>
      <PageHeader title="Limits">
        Limits of the account bind the calls of all its gateways together. Gateways and tokens can have their
        own.
      </PageHeader>
      <ResourceView of={rules}>
        {(value) => (
          <div className="stack">
            <RulesPanel rules={value} canEdit={canEdit} onSave={save} />
            <ResourceView of={budgets}>
              {(states) =>
                states.length > 0 && (
                  <BudgetTable budgets={states} owner={{}} canEdit={canEdit} onChange={reload} />
                )
              }
            </ResourceView>
          </div>
        )}
      </ResourceView>
    </>
  );
}

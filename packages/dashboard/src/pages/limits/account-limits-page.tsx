import type { SpendRule } from "@signalbox/client";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useHasPermission } from "../../session/session.ts";
import { RulesPanel } from "./rules-panel.tsx";
import { useTokenBudgets } from "./use-token-budgets.ts";

const REFRESH_MS = 5000;

/** The limits of the account over all of its gateways. */
export function AccountLimitsPage() {
  const account = useAccount();
  const canEdit = useHasPermission("gateway.edit");
  const rules = useResource(`limits ${account.id}`, (signal) => account.budgets.limits({ signal }));
  const budgets = useResource(`budgets ${account.id}`, (signal) => account.budgets.state({}, { signal }), {
    refreshMs: REFRESH_MS,
  });
  const tokens = useTokenBudgets();
  const reload = () => {
    rules.reload();
    budgets.reload();
    tokens.reload();
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
          <ResourceView of={budgets}>
            {(states) => (
              <RulesPanel
                rules={value}
                states={states}
                owner={{}}
                others={tokens.value ?? []}
                canEdit={canEdit}
                onChange={reload}
                onSave={save}
              />
            )}
          </ResourceView>
        )}
      </ResourceView>
    </>
  );
}

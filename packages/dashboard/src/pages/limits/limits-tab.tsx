import type { SpendLimits, SpendRule } from "@signalbox/client";
import { ResourceView } from "../../components/resource-view.tsx";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useHasPermission } from "../../session/session.ts";
import type { Gateway } from "../gateways/gateway.ts";
import { RulesPanel } from "./rules-panel.tsx";
import { UnknownPrice } from "./unknown-price.tsx";

const REFRESH_MS = 5000;

/** The limits of one gateway and what is left of them. */
export function LimitsTab({
  gateway,
  onChange,
}: {
  readonly gateway: Gateway;
  readonly onChange: () => void;
}) {
  const account = useAccount();
  const canEdit = useHasPermission("gateway.edit");
  const { id } = gateway;
  const budgets = useResource(
    `budgets ${account.id} ${id}`,
    (signal) => account.budgets.state({ gatewayId: id }, { signal }),
    { refreshMs: REFRESH_MS },
  );
  const reload = () => {
    onChange();
    budgets.reload();
  };
  const saveLimits = async (change: (limits: SpendLimits) => SpendLimits) => {
    await account.gateways.change(id, (now) => ({ spend_limits: change(now.spend_limits ?? {}) }));
    reload();
  };
  const saveRules = (change: (rules: readonly SpendRule[]) => readonly SpendRule[]) =>
    // Limits that somebody adds are meant to bind, also if all were switched off before.
    saveLimits((limits) => ({ ...limits, enabled: true, rules: change(limits.rules ?? []) }));
  return (
    <div className="stack">
      {!gateway.authentication && (
        <p className="notice notice-warn">
          This gateway is unauthenticated. A caller can leave its token out, and with it the limits of the
          token. Limits of the gateway bind every caller.
        </p>
      )}
      {gateway.spend_limits?.enabled === false && (
        <p className="notice notice-warn">
          The limits of this gateway are switched off. Adding or editing a limit switches them on.
        </p>
      )}
      <ResourceView of={budgets}>
        {(states) => (
          <RulesPanel
            rules={gateway.spend_limits?.rules ?? []}
            states={states}
            owner={{ gatewayId: id }}
            canEdit={canEdit}
            onChange={reload}
            onSave={saveRules}
          />
        )}
      </ResourceView>
      <UnknownPrice
        key={gateway.modified_at}
        value={gateway.spend_limits?.unknown_price ?? "block"}
        canEdit={canEdit}
        onSave={(unknownPrice) => saveLimits((limits) => ({ ...limits, unknown_price: unknownPrice }))}
      />
    </div>
  );
}

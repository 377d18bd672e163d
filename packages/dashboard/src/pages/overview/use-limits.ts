/** Limits of the account, of gateways and of tokens of which little is left. */
import type { BudgetState, OwnedBudgetState } from "@signalbox/client";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths } from "../../session/session.ts";
import type { Access } from "./use-access.ts";

const REFRESH_MS = 20_000;
/** The share from which a limit is shown. The meters of limits turn to a warning at the same share. */
const NEAR_SHARE = 0.8;

export interface NearLimit {
  readonly owner: string;
  /** Page of the owner's limits. */
  readonly to: string;
  readonly budget: BudgetState;
  /** Of the limit; 1 or more if nothing is left. */
  readonly usedShare: number;
}

export function useLimits(access: Access): Resource<readonly NearLimit[]> {
  const account = useAccount();
  const { page } = useAccountPaths();
  const ownerOf = ({ gateway_id: gateway, token_id: token, token_name: name }: OwnedBudgetState) => {
    if (token !== null) return { owner: `Token ${name ?? token}`, to: page("tokens", token) };
    return gateway === null
      ? { owner: "Account", to: page("limits") }
      : { owner: `Gateway ${gateway}`, to: page("gateways", gateway, "limits") };
  };
  return useResource(
    access.usage ? `limits ${account.id}` : null,
    async (signal) => {
      const budgets = await account.budgets.mostUsed({}, { signal });
      return budgets
        .map((budget) => ({ ...ownerOf(budget), budget, usedShare: usedShare(budget) }))
        .filter(({ usedShare: used }) => used >= NEAR_SHARE);
    },
    { refreshMs: REFRESH_MS },
  );
}

function usedShare({ limit, used, reserved }: BudgetState): number {
  return limit <= 0 ? 1 : (used + reserved) / limit;
}

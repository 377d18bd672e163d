/** Limits of the account, of gateways and of tokens of which little is left. */
import type { BudgetState } from "@signalbox/client";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths } from "../../session/session.ts";
import type { Access } from "./use-access.ts";

const REFRESH_MS = 20_000;
/** The share from which a limit is shown. The meters of limits turn to a warning at the same share. */
const NEAR_SHARE = 0.8;
/** Gateways and tokens whose limits are read; each is a request. */
const MAX_OWNERS = 40;
/** Gateways and tokens among which those with limits are looked for. */
const MAX_READ = 500;

export interface NearLimit {
  readonly owner: string;
  /** Page of the owner's limits. */
  readonly to: string;
  readonly budget: BudgetState;
  /** Of the limit; 1 or more if nothing is left. */
  readonly usedShare: number;
}

interface Owner {
  readonly name: string;
  readonly to: string;
  readonly of: { readonly gatewayId?: string; readonly tokenId?: string };
}

export function useLimits(access: Access): Resource<readonly NearLimit[]> {
  const account = useAccount();
  const { page } = useAccountPaths();
  return useResource(
    access.usage ? `limits ${account.id}` : null,
    async (signal) => {
      const owners: Owner[] = access.account ? [{ name: "Account", to: page("limits"), of: {} }] : [];
      const gateways = await account.gateways.list({}, { signal }).all(MAX_READ);
      for (const { id, spend_limits: limits } of gateways)
        if (limits?.enabled !== false && (limits?.rules?.length ?? 0) > 0)
          owners.push({
            name: `Gateway ${id}`,
            to: page("gateways", id, "limits"),
            of: { gatewayId: id },
          });
      if (access.tokens)
        for (const { id, name, budgets } of await account.tokens.list({}, { signal }).all(MAX_READ))
          if (budgets.length > 0)
            owners.push({ name: `Token ${name}`, to: page("tokens", id), of: { tokenId: id } });
      const states = await Promise.all(
        owners.slice(0, MAX_OWNERS).map(async (owner) => ({
          owner,
          budgets: await account.budgets.state(owner.of, { signal }),
        })),
      );
      return (
        states
          .flatMap(({ owner, budgets }) =>
            budgets.map((budget) => ({
              owner: owner.name,
              to: owner.to,
              budget,
              usedShare: usedShare(budget),
            })),
          )
          // Calls at the same time come and go; only what is used up for a while needs attention.
          .filter(({ budget, usedShare: used }) => used >= NEAR_SHARE && budget.type !== "parallel")
          .sort((a, b) => b.usedShare - a.usedShare)
      );
    },
    { refreshMs: REFRESH_MS },
  );
}

function usedShare({ limit, used, reserved }: BudgetState): number {
  return limit <= 0 ? 1 : (used + reserved) / limit;
}

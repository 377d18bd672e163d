import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths, useHasPermission, useScope } from "../../session/session.ts";
import { type LimitRow, limitRows } from "./limit-rows.ts";

const REFRESH_MS = 20_000;
/** Tokens among which those with budgets are looked for, and budgets that are read; each is a request. */
const MAX_TOKENS = 500;
const MAX_READ = 20;

/** Budgets of the account's tokens, most used first. Empty if the session may not read tokens. */
export function useTokenBudgets(): Resource<readonly LimitRow[]> {
  const account = useAccount();
  const { page } = useAccountPaths();
  const { session } = useScope();
  const canRead = useHasPermission("tokens.edit") && session.gateway_id === null;
  return useResource(
    canRead ? `token budgets ${account.id}` : null,
    async (signal) => {
      const tokens = await account.tokens.list({}, { signal }).all(MAX_TOKENS);
      const withBudgets = tokens.filter(({ budgets }) => budgets.length > 0).slice(0, MAX_READ);
      const rows = await Promise.all(
        withBudgets.map(async ({ id, name }) => {
          const states = await account.budgets.state({ tokenId: id }, { signal });
          return limitRows([], states, { tokenId: id }, { title: `Token ${name}`, to: page("tokens", id) });
        }),
      );
      return rows.flat().sort((a, b) => shareOf(b) - shareOf(a));
    },
    { refreshMs: REFRESH_MS },
  );
}

function shareOf({ budget }: LimitRow): number {
  return budget === null || budget.limit <= 0 ? 0 : (budget.used + budget.reserved) / budget.limit;
}

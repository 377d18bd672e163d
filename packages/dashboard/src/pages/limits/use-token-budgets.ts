import type { OwnedBudgetState } from "@signalbox/client";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths, useHasPermission, useScope } from "../../session/session.ts";
import { type LimitRow, limitRows } from "./limit-rows.ts";

const REFRESH_MS = 20_000;
/** Limits that the table has besides those of the account. */
const MAX_SHOWN = 50;

/** The most used limits of the account's tokens. Empty if the session may not read tokens. */
export function useTokenBudgets(): Resource<readonly LimitRow[]> {
  const account = useAccount();
  const { page } = useAccountPaths();
  const { session } = useScope();
  const canRead = useHasPermission("tokens.edit") && session.gateway_id === null;
  const rowsOf = (id: string, states: readonly OwnedBudgetState[]) =>
    limitRows(
      [],
      states,
      { tokenId: id },
      { title: `Token ${states[0]?.token_name ?? id}`, to: page("tokens", id) },
    );
  return useResource(
    canRead ? `token budgets ${account.id}` : null,
    async (signal) => {
      const budgets = await account.budgets.mostUsed({ of: "token", limit: MAX_SHOWN }, { signal });
      const byToken = Map.groupBy(budgets, ({ token_id: id }) => id ?? "");
      return [...byToken].flatMap(([id, states]) => rowsOf(id, states));
    },
    { refreshMs: REFRESH_MS },
  );
}

/** Management routes of accounts. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { isoTime } from "../core/iso-time.ts";
import { defineRoute, type Route } from "../http/route.ts";
import type { Account, Accounts } from "../accounts/account.ts";

const accountResult = z.object({ id: z.string(), name: z.string(), created_at: z.iso.datetime() });

export function accountRoutes(accounts: Accounts): Route[] {
  return [
    defineRoute({
      method: "POST",
      effect: "create",
      path: "/accounts",
      access: "root",
      summary: "Create an account.",
      body: z.strictObject({ id: z.string().optional(), name: z.string().min(1).max(256).optional() }),
      result: accountResult,
      handler: async ({ body }) => ({ result: showAccount(await accounts.create(body)) }),
    }),
    defineRoute({
      method: "GET",
      path: "/accounts",
      access: "authenticated",
      summary: "List the accounts the token can see.",
      narrowsToGateway: true,
      result: z.array(accountResult),
      handler: ({ principal }) => {
        const visible = accounts
          .list()
          .filter((account) => principal.kind === "root" || principal.token.accountId === account.id);
        return { result: visible.map(showAccount), resultInfo: { count: visible.length } };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/accounts/{account_id}",
      access: "authenticated",
      summary: "Read one account.",
      narrowsToGateway: true,
      result: accountResult,
      handler: ({ params }) => {
        const account = accounts.find(params.account_id);
        if (account === undefined) throw new SignalboxError("not_found", { message: "Account not found" });
        return { result: showAccount(account) };
      },
    }),
  ];
}

function showAccount(account: Account): z.input<typeof accountResult> {
  return { id: account.id, name: account.name, created_at: isoTime(account.createdAt) };
}

/** Management routes of accounts and tokens. */
import { PERMISSIONS, SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Route } from "../http/route.ts";
import type { Account, Accounts } from "./account.ts";
import { boundGateway } from "./principal.ts";
import type { Token } from "./token.ts";
import type { Tokens } from "./tokens.ts";
import { maySee, mayRevoke } from "./token-bounds.ts";

const accountResult = z.object({ id: z.string(), name: z.string(), created_at: z.iso.datetime() });

const tokenResult = z.object({
  id: z.string(),
  name: z.string(),
  permissions: z.array(z.enum(PERMISSIONS)),
  gateway_id: z.string().nullable(),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().nullable(),
  last_used_at: z.iso.datetime().nullable(),
  last_four: z.string(),
});

const expiry = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

const newToken = z.strictObject({
  name: z.string().min(1).max(256),
  permissions: z.array(z.enum(PERMISSIONS)).min(1),
  gateway_id: z.string().nullish(),
  expires_at: expiry.nullish(),
});

export function accountRoutes(accounts: Accounts, tokens: Tokens): Route[] {
  return [
    defineRoute({
      method: "POST",
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
    ...tokenListRoutes(tokens),
    ...tokenRoutes(tokens),
  ];
}

const TOKENS_PATH = "/accounts/{account_id}/tokens";

function tokenListRoutes(tokens: Tokens): Route[] {
  return [
    defineRoute({
      method: "POST",
      path: TOKENS_PATH,
      access: "tokens.edit",
      summary: "Create a token. Only this response contains its text, in `result.token`.",
      narrowsToGateway: true,
      body: newToken,
      result: tokenResult.extend({ token: z.string() }),
      handler: async ({ params, body, principal }) => {
        const { token, text } = await tokens.create(principal, params.account_id, {
          name: body.name,
          permissions: body.permissions,
          gatewayId: body.gateway_id ?? null,
          expiresAt: body.expires_at ?? null,
        });
        return {
          result: { ...showToken(token), token: text.reveal() },
          headers: { "cache-control": "no-store" },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: TOKENS_PATH,
      access: "tokens.edit",
      summary:
        "List tokens in order of creation, 100 per page. A token bound to a gateway lists only tokens of that gateway without additional permissions.",
      narrowsToGateway: true,
      query: z.object({ cursor: z.string().max(64).optional() }),
      result: z.array(tokenResult),
      handler: async ({ params, query, principal }) => {
        const { tokens: found, next } = await tokens.list(
          params.account_id,
          query.cursor,
          boundGateway(principal),
        );
        const page = found.filter((token) => maySee(principal, token));
        const lastUse = await tokens.readLastUse(page.map((token) => token.id));
        return {
          result: page.map((token) => showToken(token, lastUse.get(token.id))),
          resultInfo: { count: page.length, cursor: next, cursors: next === null ? {} : { after: next } },
        };
      },
    }),
  ];
}

function tokenRoutes(tokens: Tokens): Route[] {
  const path = `${TOKENS_PATH}/{token_id}` as const;
  return [
    defineRoute({
      method: "GET",
      path,
      access: "tokens.edit",
      summary: "Read one token, without its text.",
      narrowsToGateway: true,
      result: tokenResult,
      handler: async ({ params, principal }) => {
        const token = tokens.find(params.account_id, params.token_id);
        if (token === undefined) throw new SignalboxError("not_found", { message: "Token not found" });
        if (!maySee(principal, token)) throw new SignalboxError("forbidden");
        const lastUse = await tokens.readLastUse([token.id]);
        return { result: showToken(token, lastUse.get(token.id)) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path,
      access: "tokens.edit",
      summary:
        "Revoke a token that has no permission the caller lacks. It is refused immediately, and its connections and streams end.",
      narrowsToGateway: true,
      result: z.object({ id: z.string() }),
      handler: async ({ params, principal }) => {
        const { account_id: accountId, token_id: id } = params;
        const token = tokens.find(accountId, id);
        if (token !== undefined && !mayRevoke(principal, token)) {
          throw new SignalboxError("forbidden", {
            message: "Permission denied: the token has access that yours lacks",
          });
        }
        if (!(await tokens.revoke(accountId, id))) {
          throw new SignalboxError("not_found", { message: "Token not found" });
        }
        return { result: { id } };
      },
    }),
  ];
}

function showAccount(account: Account): z.input<typeof accountResult> {
  return { id: account.id, name: account.name, created_at: isoTime(account.createdAt) };
}

/** Returns the JSON form of a token, without the credential. */
export function showToken(token: Token, lastUsedAt?: number): z.input<typeof tokenResult> {
  return {
    id: token.id,
    name: token.name,
    permissions: [...token.permissions],
    gateway_id: token.gatewayId,
    created_at: isoTime(token.createdAt),
    expires_at: token.expiresAt === null ? null : isoTime(token.expiresAt),
    last_used_at: lastUsedAt === undefined ? null : isoTime(lastUsedAt),
    last_four: token.suffix,
  };
}

function isoTime(time: number): string {
  return new Date(time).toISOString();
}

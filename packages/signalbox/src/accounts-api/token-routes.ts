/** Management routes of tokens. */
import { PERMISSIONS, SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { entityTag, requireMatch } from "../core/entity-tag.ts";
import { defineRoute, type Reply, type Route } from "../http/route.ts";
import { boundGateway, type Principal } from "../accounts/principal.ts";
import type { Token } from "../accounts/token.ts";
import { mayRevoke, mayRotate, maySee } from "../accounts/token-bounds.ts";
import { NO_POLICY } from "../accounts/token-policy.ts";
import { applyPolicyBody, showPolicy } from "../accounts/token-policy-schema.ts";
import {
  newTokenFields,
  showToken,
  tokenResult,
  toNewToken,
  warnOfOpenGateways,
} from "../accounts/token-schema.ts";
import { type TokenChange, tokenMissing, type Tokens } from "../accounts/tokens.ts";

const MAX_GRACE_S = 30 * 24 * 3600;

const createdResult = tokenResult.extend({ token: z.string() });

const name = z.string().min(1).max(256);

const newToken = z.strictObject({
  name,
  permissions: z.array(z.enum(PERMISSIONS)).min(1),
  gateway_id: z.string().nullish(),
  ...newTokenFields,
});

const tokenChange = z.strictObject({
  name: name.optional(),
  ...newTokenFields,
  // Returned by a read and not settable; accepted if unchanged, so that a client can send back what it read.
  permissions: z.array(z.string()).optional(),
  gateway_id: z.string().nullish(),
  id: z.unknown().optional(),
  created_at: z.unknown().optional(),
  last_used_at: z.unknown().optional(),
  last_four: z.unknown().optional(),
  previous_expires_at: z.unknown().optional(),
});

const TOKENS_PATH = "/accounts/{account_id}/tokens";
const TOKEN_PATH = `${TOKENS_PATH}/{token_id}`;
const NO_STORE = { "cache-control": "no-store" };

/** Gateways of an account that require no token. */
export type OpenGateways = (accountId: string) => readonly string[];

export function tokenRoutes(tokens: Tokens, openGateways: OpenGateways): Route[] {
  return [...tokenListRoutes(tokens, openGateways), ...oneTokenRoutes(tokens), ...tokenChangeRoutes(tokens)];
}

function tokenListRoutes(tokens: Tokens, openGateways: OpenGateways): Route[] {
  return [
    defineRoute({
      method: "POST",
      effect: "create",
      path: TOKENS_PATH,
      access: "tokens.edit",
      summary: "Create a token. Only this response contains its text, in `result.token`.",
      narrowsToGateway: true,
      body: newToken,
      result: createdResult,
      handler: async ({ params, body, principal }) => {
        const { token, text } = await tokens.create(principal, params.account_id, {
          name: body.name,
          permissions: body.permissions,
          gatewayId: body.gateway_id ?? null,
          ...toNewToken(body),
        });
        return {
          result: { ...showToken(token), token: text.reveal() },
          messages: warnOfOpenGateways(token, openGateways(params.account_id)),
          headers: NO_STORE,
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: TOKENS_PATH,
      access: "tokens.edit",
      summary:
        "List tokens in order of creation, 100 per page; `owner` and `gateway_id` select. A token bound to a gateway lists only tokens of that gateway without additional permissions.",
      narrowsToGateway: true,
      query: z.object({
        cursor: z.string().max(64).optional(),
        owner: z.string().min(1).max(256).optional(),
        gateway_id: z.string().min(1).max(64).optional(),
      }),
      result: z.array(tokenResult),
      handler: async ({ params, query, principal }) => {
        const own = boundGateway(principal);
        if (own !== null && query.gateway_id !== undefined && query.gateway_id !== own) {
          throw new SignalboxError("forbidden");
        }
        const { tokens: found, next } = await tokens.list(params.account_id, query.cursor, {
          gatewayId: own ?? query.gateway_id ?? null,
          owner: query.owner,
        });
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

function oneTokenRoutes(tokens: Tokens): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: TOKEN_PATH,
      access: "tokens.edit",
      summary: "Read one token, without its text.",
      narrowsToGateway: true,
      result: tokenResult,
      handler: ({ params, principal }) => showTagged(tokens, requireToken(tokens, params, principal)),
    }),
    defineRoute({
      method: "DELETE",
      path: TOKEN_PATH,
      access: "tokens.edit",
      summary:
        "Revoke a token that has no permission the caller lacks. It is refused immediately, and its connections and streams end.",
      narrowsToGateway: true,
      result: z.object({ id: z.string() }),
      handler: async ({ params, principal }) => {
        const { account_id: accountId, token_id: id } = params;
        const token = tokens.find(accountId, id);
        if (token !== undefined && !mayRevoke(principal, token)) throw beyondYours();
        if (!(await tokens.revoke(accountId, id))) throw tokenMissing();
        return { result: { id } };
      },
    }),
  ];
}

function tokenChangeRoutes(tokens: Tokens): Route[] {
  return [
    defineRoute({
      method: "PATCH",
      path: TOKEN_PATH,
      access: "tokens.edit",
      summary:
        "Change the name, expiry, limits, metadata or `disabled` of a token, within the limits of the caller; omitted members keep their values. `If-Match` takes the `etag` of a read.",
      narrowsToGateway: true,
      body: tokenChange,
      result: tokenResult,
      handler: async ({ params, body, principal, headers }) => {
        const before = requireToken(tokens, params, principal);
        if (!mayRevoke(principal, before)) throw beyondYours();
        requireUnchanged(before, body);
        const token = await tokens.update(principal, params.account_id, before.id, (current) => {
          requireMatch(headers, settingsOf(current));
          return toChange(current, body);
        });
        return showTagged(tokens, token);
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${TOKEN_PATH}/rotate`,
      access: "tokens.edit",
      summary:
        "Give a token a new text, which only this response contains. The old text is valid for `grace_s` more seconds (default 0).",
      narrowsToGateway: true,
      body: z.strictObject({ grace_s: z.int().min(0).max(MAX_GRACE_S).default(0) }),
      result: createdResult,
      handler: async ({ params, body, principal }) => {
        const before = requireToken(tokens, params, principal);
        if (!mayRevoke(principal, before) || !mayRotate(principal, before)) throw beyondYours();
        const { token, text } = await tokens.rotate(params.account_id, before.id, body.grace_s * 1000);
        return { result: { ...(await showWithUse(tokens, token)), token: text.reveal() }, headers: NO_STORE };
      },
    }),
  ];
}

function toChange(before: Token, body: z.output<typeof tokenChange>): TokenChange {
  return {
    name: body.name,
    expiresAt: body.expires_at,
    isDisabled: body.disabled,
    policy: applyPolicyBody(before.policy ?? NO_POLICY, body),
  };
}

function requireUnchanged(token: Token, body: z.output<typeof tokenChange>): void {
  const { permissions, gateway_id: gatewayId } = body;
  if (permissions !== undefined && !isSameSet(token.permissions, permissions)) {
    throw new SignalboxError("invalid_request", {
      message: "permissions: a token keeps its permissions; create another token",
    });
  }
  if (gatewayId !== undefined && gatewayId !== token.gatewayId) {
    throw new SignalboxError("invalid_request", {
      message: "gateway_id: a token keeps its gateway; create another token",
    });
  }
}

function isSameSet(own: ReadonlySet<string>, given: readonly string[]): boolean {
  const set = new Set(given);
  return set.size === own.size && [...own].every((item) => set.has(item));
}

function requireToken(
  tokens: Tokens,
  params: { readonly account_id: string; readonly token_id: string },
  principal: Principal,
): Token {
  const token = tokens.find(params.account_id, params.token_id);
  if (token === undefined) throw tokenMissing();
  if (!maySee(principal, token)) throw new SignalboxError("forbidden");
  return token;
}

/** What a change can set. */
function settingsOf({ name: own, expiresAt, isDisabled, policy }: Token): unknown {
  return [own, expiresAt, isDisabled, showPolicy(policy ?? NO_POLICY)];
}

async function showTagged(tokens: Tokens, token: Token): Promise<Reply> {
  return { result: await showWithUse(tokens, token), headers: { etag: entityTag(settingsOf(token)) } };
}

async function showWithUse(tokens: Tokens, token: Token): Promise<z.input<typeof tokenResult>> {
  const lastUse = await tokens.readLastUse([token.id]);
  return showToken(token, lastUse.get(token.id));
}

function beyondYours(): SignalboxError {
  return new SignalboxError("forbidden", {
    message: "Permission denied: the token has access that yours lacks",
  });
}

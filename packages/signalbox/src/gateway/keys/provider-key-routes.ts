/**
 * Management routes of provider keys, compatible with the `providerConfigs` resource of the public `cloudflare` SDK: of a gateway, and of all gateways of
 * an account. A key is accepted and never returned.
 */
import { isTokenShaped } from "@signalbox/protocol";
import { z } from "zod";
import { invalidRequest } from "../../core/invalid-request.ts";
import { isoTime } from "../../core/iso-time.ts";
import type { Clock } from "../../core/clock.ts";
import { Secret } from "../../core/secret.ts";
import { defineRoute, type PathParams, type Route } from "../../http/route.ts";
import type { PoolKey } from "./provider-key-pool.ts";
import { grantName, SECRET_TEXT } from "./key-source.ts";
import type { IdentityState } from "../providers/identity/cloud-identities.ts";
import type { ProviderDirectory } from "../providers/provider.ts";
import type { Gateways } from "../settings/gateways.ts";
import { pageOf, pageQuery } from "../page.ts";
import type { KeyChange, KeyScope, ProviderKeys } from "./provider-keys.ts";
import { GATEWAYS_PATH, requireGateway } from "../settings/gateway-routes.ts";

const OF_GATEWAY = `${GATEWAYS_PATH}/{gateway_id}/provider_configs`;
const ONE_OF_GATEWAY = `${OF_GATEWAY}/{config_id}`;
const OF_ACCOUNT = "/accounts/{account_id}/ai-gateway/provider_configs";
const ONE_OF_ACCOUNT = `${OF_ACCOUNT}/{account_config_id}`;
const MAX_PERIOD_S = 366 * 24 * 3600;
const HIDDEN_START = "…";

const glob = z
  .string()
  .max(256)
  .regex(/^!?[^!\s][^\s]*$/, 'must be a name with "*" for any text, after "!" to exclude it');

const fields = {
  /** Empty or omitted: the key belongs to the pool and cannot be named by a call. */
  alias: z
    .string()
    .regex(/^[\w.-]{0,64}$/, "must be up to 64 letters, digits, _, . or -")
    .optional(),
  /** Used by calls without an alias. */
  default_config: z.boolean().optional(),
  /** The key itself; it is stored encrypted. */
  secret: z
    .string()
    .regex(SECRET_TEXT, "must be printable ASCII without spaces at its ends, at most 8192 characters")
    .transform((text) => new Secret(text))
    .optional(),
  /** `env:NAME` or `file:PATH`: where the service finds the key. */
  secret_id: z.string().min(1).max(512).optional(),
  /** Share of the pool's calls, relative to the weights of the other keys. */
  weight: z.int().min(1).max(1000).optional(),
  /** Models that the key is used for; null or empty: all. */
  models: z.array(glob).max(100).nullish(),
  /** Calls with this key per period; null: no limit. */
  rate_limit: z.int().min(1).max(1_000_000_000).nullish(),
  /** Seconds. Default 60. */
  rate_limit_period: z.int().min(1).max(MAX_PERIOD_S).nullish(),
  disabled: z.boolean().optional(),
};

const creation = z.strictObject({ ...fields, provider_slug: z.string() });

const change = z.strictObject({
  ...fields,
  // Returned by a read and not settable; accepted, so that a client can send back what it read.
  provider_slug: z.string().optional(),
  id: z.unknown().optional(),
  gateway_id: z.unknown().optional(),
  secret_preview: z.unknown().optional(),
  modified_at: z.unknown().optional(),
  created_at: z.unknown().optional(),
  last_used_at: z.unknown().optional(),
  status: z.unknown().optional(),
  cooldown_until: z.unknown().optional(),
  refused_models: z.unknown().optional(),
  identity: z.unknown().optional(),
});

const result = z.object({
  id: z.string(),
  alias: z.string(),
  default_config: z.boolean(),
  gateway_id: z.string().nullable(),
  provider_slug: z.string(),
  secret_id: z.string(),
  secret_preview: z.string(),
  weight: z.number(),
  models: z.array(z.string()),
  rate_limit: z.number().nullable(),
  rate_limit_period: z.number(),
  disabled: z.boolean(),
  status: z.enum(["active", "cooldown", "invalid", "disabled"]),
  cooldown_until: z.iso.datetime().nullable(),
  refused_models: z.array(z.string()),
  /** Of a key that is a cloud identity: where its credentials come from, until when they are good, and why there are no newer ones. */
  identity: z
    .object({ source: z.string(), expires_at: z.iso.datetime().nullable(), error: z.string().nullable() })
    .nullable(),
  last_used_at: z.iso.datetime().nullable(),
  created_at: z.iso.datetime(),
  modified_at: z.iso.datetime(),
});

export interface ProviderKeyRouteParts {
  readonly gateways: Gateways;
  readonly keys: ProviderKeys;
  readonly providers: ProviderDirectory;
  readonly clock: Clock;
}

export function providerKeyRoutes(parts: ProviderKeyRouteParts): Route[] {
  const ofGateway = (params: PathParams<typeof OF_GATEWAY>): KeyScope => {
    const gateway = requireGateway(parts.gateways, params);
    return { accountId: gateway.accountId, gatewayId: gateway.id };
  };
  const ofAccount = (params: PathParams<typeof OF_ACCOUNT>): KeyScope => ({
    accountId: params.account_id,
    gatewayId: null,
  });
  return [
    ...scopeRoutes<typeof OF_GATEWAY, typeof ONE_OF_GATEWAY>(parts, {
      all: OF_GATEWAY,
      one: ONE_OF_GATEWAY,
      owner: "a gateway",
      scopeOf: ofGateway,
      keyOf: (params) => ({ scope: ofGateway(params), id: params.config_id }),
    }),
    ...scopeRoutes<typeof OF_ACCOUNT, typeof ONE_OF_ACCOUNT>(parts, {
      all: OF_ACCOUNT,
      one: ONE_OF_ACCOUNT,
      owner: "an account, for all its gateways",
      scopeOf: ofAccount,
      keyOf: (params) => ({ scope: ofAccount(params), id: params.account_config_id }),
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: "/provider_keys/rotate_master",
      access: "root",
      summary: "Encrypt all stored provider keys with a new master key.",
      result: z.object({ rotated: z.number(), unreadable: z.number() }),
      handler: async () => ({ result: await parts.keys.rotateMaster() }),
    }),
  ];
}

interface ScopePaths<All extends string, One extends string> {
  readonly all: All;
  readonly one: One;
  readonly owner: string;
  scopeOf(params: PathParams<All>): KeyScope;
  keyOf(params: PathParams<One>): { readonly scope: KeyScope; readonly id: string };
}

function scopeRoutes<All extends string, One extends string>(
  { keys, providers, clock }: ProviderKeyRouteParts,
  { all, one, owner, scopeOf, keyOf }: ScopePaths<All, One>,
): Route[] {
  const show = (key: PoolKey) => showKey(key, clock.now(), keys.identityOf(key)?.state ?? null);
  return [
    defineRoute({
      method: "GET",
      path: all,
      access: "gateway.read",
      summary: `List the provider keys of ${owner}, with their state and never the key itself.`,
      query: pageQuery,
      result: z.array(result),
      handler: ({ params, query }) => {
        const { items, resultInfo } = pageOf(keys.list(scopeOf(params)), query);
        return { result: items.map(show), resultInfo };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "create",
      path: all,
      access: "gateway.edit",
      summary: `Add a provider key of ${owner}: \`secret\` stores it encrypted, \`secret_id\` names a variable or file of the service.`,
      body: creation,
      result,
      handler: async ({ params, body }) => {
        const scope = scopeOf(params);
        if (providers.find(scope.accountId, body.provider_slug) === undefined) {
          throw invalidRequest("provider_slug names no provider");
        }
        return { result: show(await keys.create(scope, body.provider_slug, toChange(body))) };
      },
    }),
    defineRoute({
      method: "GET",
      path: one,
      access: "gateway.read",
      summary: `Read a provider key of ${owner}, without the key itself.`,
      result,
      handler: ({ params }) => {
        const { scope, id } = keyOf(params);
        return { result: show(keys.get(scope, id)) };
      },
    }),
    defineRoute({
      method: "PATCH",
      path: one,
      access: "gateway.edit",
      summary: `Change a provider key of ${owner}; omitted members keep their values. The key counts as active again.`,
      body: change,
      result,
      handler: async ({ params, body }) => {
        const { scope, id } = keyOf(params);
        const { key } = keys.get(scope, id);
        if (body.provider_slug !== undefined && body.provider_slug !== key.providerSlug) {
          throw invalidRequest("provider_slug: a key keeps its provider");
        }
        // A client that sends back what it read names the current source.
        const isSame = body.secret_id === secretIdOf(key);
        const wanted = toChange(isSame ? { ...body, secret_id: undefined } : body);
        return { result: show(await keys.update(scope, key.id, wanted)) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: one,
      access: "gateway.edit",
      summary: `Delete a provider key of ${owner}.`,
      result,
      handler: async ({ params }) => {
        const { scope, id } = keyOf(params);
        return { result: show(await keys.delete(scope, id)) };
      },
    }),
  ];
}

function toChange(body: Omit<z.output<typeof change>, "provider_slug">): KeyChange {
  if (body.secret !== undefined && body.secret_id !== undefined) {
    throw invalidRequest("secret and secret_id: expected one of them, found both");
  }
  if (body.secret !== undefined && isTokenShaped(body.secret.reveal())) {
    throw invalidRequest("secret: a Signalbox token is not a provider key");
  }
  return {
    alias: body.alias,
    isDefault: body.default_config,
    secret: body.secret,
    secretId: body.secret_id,
    weight: body.weight,
    models: body.models === null ? [] : body.models,
    rateLimit: body.rate_limit,
    rateLimitPeriodS: body.rate_limit_period ?? undefined,
    isDisabled: body.disabled,
  };
}

/** A stored key has its own id as `secret_id`. */
function secretIdOf(key: PoolKey["key"]): string {
  return key.secretId === null ? key.id : grantName(key.secretId);
}

function showKey(
  { key, health }: PoolKey,
  now: number,
  identity: IdentityState | null,
): z.input<typeof result> {
  const { secretId } = key;
  return {
    id: key.id,
    alias: key.alias,
    default_config: key.isDefault,
    gateway_id: key.gatewayId,
    provider_slug: key.providerSlug,
    secret_id: secretIdOf(key),
    secret_preview: secretId === null ? `${HIDDEN_START}${key.preview}` : previewOf(secretId),
    weight: key.weight,
    models: [...key.models],
    rate_limit: key.rateLimit,
    rate_limit_period: key.rateLimitPeriodS,
    disabled: key.isDisabled,
    status: health.statusOf(key, now),
    cooldown_until: health.cooldownUntil > now ? isoTime(health.cooldownUntil) : null,
    refused_models: [...health.refusedModels],
    identity:
      identity === null
        ? null
        : {
            source: identity.source,
            expires_at: identity.expiresAt === null ? null : isoTime(identity.expiresAt),
            error: identity.error,
          },
    last_used_at: health.usedAt === null ? null : isoTime(health.usedAt),
    created_at: isoTime(key.createdAt),
    modified_at: isoTime(key.modifiedAt),
  };
}

function previewOf(secretId: string): string {
  return secretId.startsWith("file:") ? secretId : `$${grantName(secretId)}`;
}

/** Management routes of gateways, compatible with the `aiGateway` resource of the public `cloudflare` SDK. */
import { z } from "zod";
import {
  boundGateway,
  newTokenFields,
  showToken,
  toNewToken,
  type Tokens,
  warnOfOpenGateways,
} from "../../accounts/index.ts";
import { entityTag, requireMatch } from "../../core/entity-tag.ts";
import { defineRoute, type Reply, type Route } from "../../http/route.ts";
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import type { ProviderDirectory } from "../providers/provider.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Gateway } from "./gateway.ts";
import { gatewayCreation, gatewaySettings, gatewayUpdate, pickSettings } from "./gateway-settings.ts";
import { gatewayMissing, type Gateways } from "./gateways.ts";
import { hideOtel, type OtelReceivers } from "./otel-receivers.ts";
import { pageOf, pageQuery } from "../page.ts";

export const GATEWAYS_PATH = "/accounts/{account_id}/ai-gateway/gateways";
const ONE = `${GATEWAYS_PATH}/{gateway_id}`;

export interface GatewayRouteParts {
  readonly gateways: Gateways;
  readonly tokens: Tokens;
  readonly providers: ProviderDirectory;
  /** Filters lists by tag. */
  readonly tags: TagLookup | undefined;
  readonly otel: OtelReceivers;
}

const gatewayResult = gatewaySettings.omit({ guardrail_rules: true }).extend({
  id: z.string(),
  is_default: z.boolean(),
  created_at: z.iso.datetime(),
  modified_at: z.iso.datetime(),
});

const newGatewayToken = z.strictObject({ name: z.string().min(1).max(256).optional(), ...newTokenFields });

export function gatewayRoutes(parts: GatewayRouteParts): Route[] {
  const { gateways } = parts;
  return [
    defineRoute({
      method: "GET",
      path: GATEWAYS_PATH,
      access: "gateway.read",
      summary: "List gateways; `search` is part of the id, `tag` filters as in the tagging interface.",
      query: pageQuery.extend({ search: z.string().max(64).optional() }),
      parameters: ["tag"],
      repeatable: ["tag"],
      narrowsToGateway: true,
      result: z.array(gatewayResult),
      handler: async ({ params, query, rawQuery, principal }) => {
        const accountId = params.account_id;
        const own = boundGateway(principal);
        const tagged = await parts.tags?.matchingIds(accountId, "ai_gateway", rawQuery.getAll("tag"));
        const found = gateways
          .list(accountId)
          .filter(({ id }) => own === null || id === own)
          .filter(({ id }) => id.includes(query.search ?? "") && (tagged == null || tagged.has(id)));
        const { items, resultInfo } = pageOf(found, query);
        return { result: items.map(showGateway), resultInfo };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "create",
      path: GATEWAYS_PATH,
      access: "gateway.edit",
      summary: "Create a gateway.",
      body: gatewayCreation,
      result: gatewayResult,
      handler: async ({ params, body }) => {
        const accountId = params.account_id;
        const settings = parts.otel.seal({ accountId, id: body.id }, pickSettings(body), null);
        return { result: showGateway(await gateways.create(accountId, body.id, settings)) };
      },
    }),
    defineRoute({
      method: "GET",
      path: ONE,
      access: "gateway.read",
      summary: "Read one gateway.",
      result: gatewayResult,
      handler: ({ params }) => tagged(requireGateway(gateways, params)),
    }),
    defineRoute({
      method: "PUT",
      path: ONE,
      access: "gateway.edit",
      summary:
        "Change a gateway's settings; omitted settings keep their values. `If-Match` takes the `etag` of a read.",
      body: gatewayUpdate,
      result: gatewayResult,
      handler: async ({ params, body, headers }) => {
        const id = params.gateway_id;
        if (body.id !== undefined && body.id !== id) {
          throw new SignalboxError("invalid_request", { message: "id: a gateway cannot be renamed" });
        }
        const accountId = params.account_id;
        const changed = await gateways.change(accountId, id, (present) => {
          requireMatch(headers, present);
          return parts.otel.seal({ accountId, id }, pickSettings(body), present.otel);
        });
        return tagged(changed);
      },
    }),
    defineRoute({
      method: "DELETE",
      path: ONE,
      access: "gateway.edit",
      summary: "Delete a gateway with its logs, stored keys and tags, and revoke the tokens bound to it.",
      result: gatewayResult,
      handler: async ({ params }) => ({
        result: showGateway(await gateways.delete(params.account_id, params.gateway_id)),
      }),
    }),
    defineRoute({
      method: "POST",
      effect: "create",
      path: `${ONE}/tokens`,
      access: "gateway.edit",
      summary:
        "Create an authentication token with Run permission for this gateway, which the caller must hold; the token is shown in this response only.",
      body: newGatewayToken,
      handler: async ({ params, body, principal }) => {
        const gateway = requireGateway(gateways, params);
        const { token, text } = await parts.tokens.create(principal, gateway.accountId, {
          name: body.name ?? `${gateway.id} gateway`,
          permissions: ["gateway.run"],
          gatewayId: gateway.id,
          ...toNewToken(body),
        });
        return {
          result: { ...showToken(token), token: text.reveal() },
          messages: warnOfOpenGateways(token, gateway.settings.authentication ? [] : [gateway.id]),
          headers: { "cache-control": "no-store" },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${ONE}/url/{provider}`,
      access: "gateway.read",
      summary: "The base URL to configure in a client of this provider.",
      result: z.string(),
      handler: ({ params, trafficOrigin }) => {
        const gateway = requireGateway(gateways, params);
        const slug = params.provider;
        if (parts.providers.find(gateway.accountId, slug) === undefined) {
          throw new SignalboxError("not_found", { message: "Provider not found" });
        }
        return {
          result: `${trafficOrigin}/v1/${gateway.accountId}/${gateway.id}/${slug}`,
        };
      },
    }),
  ];
}

/** Of paths below a gateway. */
export interface GatewayParams {
  readonly account_id: string;
  readonly gateway_id: string;
}

export function requireGateway(gateways: Gateways, params: GatewayParams): Gateway {
  const gateway = gateways.find(params.account_id, params.gateway_id);
  if (gateway === undefined) throw gatewayMissing();
  return gateway;
}

/** The tag is that of the settings: the rest does not change. */
function tagged(gateway: Gateway): Reply {
  return { result: showGateway(gateway), headers: { etag: entityTag(gateway.settings) } };
}

function showGateway(gateway: Gateway): z.input<typeof gatewayResult> {
  const { guardrail_rules: _, ...settings } = gateway.settings;
  return {
    id: gateway.id,
    is_default: gateway.isDefault,
    created_at: new Date(gateway.createdAt).toISOString(),
    modified_at: new Date(gateway.modifiedAt).toISOString(),
    ...settings,
    otel: hideOtel(gateway.settings.otel),
  };
}

/** Management routes of a gateway's provider keys, compatible with the `providerConfigs` resource of the public `cloudflare` SDK. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import type { ProviderDirectory } from "../providers/provider.ts";
import type { Gateways } from "./gateways.ts";
import { pageOf, pageQuery } from "./page.ts";
import { envPrefix, type ProviderKey, type ProviderKeys } from "./provider-keys.ts";
import { GATEWAYS_PATH, requireGateway } from "./routes.ts";

const PATH = `${GATEWAYS_PATH}/{gateway_id}/provider_configs`;

const creation = z.strictObject({
  alias: z.string().regex(/^[\w.-]{1,64}$/, "must be 1 to 64 letters, digits, _, . or -"),
  default_config: z.boolean(),
  provider_slug: z.string(),
  /** Name of the environment variable that holds the key. */
  secret_id: z.string().max(256).optional(),
  secret: z.string().optional(),
});

const result = z.object({
  id: z.string(),
  alias: z.string(),
  default_config: z.boolean(),
  gateway_id: z.string(),
  provider_slug: z.string(),
  secret_id: z.string(),
  secret_preview: z.string(),
  modified_at: z.iso.datetime(),
});

export function providerKeyRoutes(
  gateways: Gateways,
  keys: ProviderKeys,
  providers: ProviderDirectory,
): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      access: "gateway.read",
      summary: "List a gateway's provider keys: the environment variable of each, never the key itself.",
      query: pageQuery,
      result: z.array(result),
      handler: ({ params, query }) => {
        const { items, resultInfo } = pageOf(keys.list(requireGateway(gateways, params)), query);
        return { result: items.map(show), resultInfo };
      },
    }),
    defineRoute({
      method: "POST",
      path: PATH,
      access: "gateway.edit",
      summary: "Let calls without a provider credential use a key from the service's environment.",
      body: creation,
      result,
      handler: async ({ params, body }) => {
        const gateway = requireGateway(gateways, params);
        if (providers.find(gateway.accountId, body.provider_slug) === undefined) {
          throw new SignalboxError("invalid_request", { message: "provider_slug names no provider" });
        }
        if (body.secret !== undefined) {
          throw new SignalboxError("invalid_request", {
            message: `secret: keys are not stored; put the key into the environment variable ${envPrefix(body.provider_slug)} and name it in secret_id`,
          });
        }
        const key = await keys.create(gateway, {
          providerSlug: body.provider_slug,
          alias: body.alias,
          isDefault: body.default_config,
          envName: body.secret_id ?? envPrefix(body.provider_slug),
        });
        return { result: show(key) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: `${PATH}/{config_id}`,
      access: "gateway.edit",
      summary: "Delete a provider key entry.",
      result,
      handler: async ({ params }) => ({
        result: show(await keys.delete(requireGateway(gateways, params), params["config_id"] ?? "")),
      }),
    }),
  ];
}

function show(key: ProviderKey): z.input<typeof result> {
  return {
    id: key.id,
    alias: key.alias,
    default_config: key.isDefault,
    gateway_id: key.gatewayId,
    provider_slug: key.providerSlug,
    secret_id: key.envName,
    secret_preview: `$${key.envName}`,
    modified_at: new Date(key.modifiedAt).toISOString(),
  };
}

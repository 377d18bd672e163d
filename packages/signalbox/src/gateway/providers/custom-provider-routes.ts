/**
 * Management routes of custom providers, compatible with the `customProviders` resource of the public `cloudflare` SDK. A client can send
 * back what it read: header values are shown as `[secret]`, which means the stored value.
 */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import { pageOf, pageQuery } from "../page.ts";
import type { CustomProvider, CustomProviders } from "./custom-providers.ts";
import { HIDDEN } from "./secret-headers.ts";

const PATH = "/accounts/{account_id}/ai-gateway/custom-providers";

const details = {
  name: z.string().min(1).max(256),
  base_url: z.string().max(2048),
  description: z.string().max(2048),
  enable: z.boolean(),
  headers: z.string().max(8192),
  link: z.string().max(2048),
  logo: z.string().max(65_536),
  position: z.int(),
};

const creation = z.strictObject({
  ...details,
  slug: z.string(),
  description: details.description.default(""),
  enable: details.enable.default(true),
  headers: details.headers.default(""),
  link: details.link.default(""),
  logo: details.logo.default(""),
  position: details.position.default(0),
});

/** Returned by a read and not settable; accepted and ignored, so that a client can send back what it read. */
const change = z
  .strictObject({
    ...details,
    slug: z.string(),
    id: z.string(),
    created_at: z.unknown(),
    modified_at: z.unknown(),
  })
  .partial();

const result = z.object({
  id: z.string(),
  slug: z.string(),
  ...details,
  created_at: z.iso.datetime(),
  modified_at: z.iso.datetime(),
});

export function customProviderRoutes(providers: CustomProviders): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      access: "gateway.read",
      summary: "List the account's custom providers.",
      query: pageQuery,
      result: z.array(result),
      handler: ({ params, query }) => {
        const { items, resultInfo } = pageOf(providers.list(params.account_id), query);
        return { result: items.map(show), resultInfo };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "create",
      path: PATH,
      access: "gateway.edit",
      summary: "Create a custom provider, reached as `custom-<slug>`.",
      body: creation,
      result,
      handler: async ({ params, body: { slug, ...rest } }) => ({
        result: show(await providers.create(params.account_id, slug, rest)),
      }),
    }),
    defineRoute({
      method: "GET",
      path: `${PATH}/{provider_id}`,
      access: "gateway.read",
      summary: "Read one of the account's custom providers.",
      result,
      handler: ({ params }) => ({
        result: show(providers.get(params.account_id, params.provider_id)),
      }),
    }),
    defineRoute({
      method: "PATCH",
      path: `${PATH}/{provider_id}`,
      access: "gateway.edit",
      summary:
        "Change a provider, except its slug. A new `base_url` removes stored header values that the same request does not set.",
      body: change,
      result,
      handler: async ({ params, body }) => {
        const accountId = params.account_id;
        const before = providers.get(accountId, params.provider_id);
        const { id = before.id, slug = before.slug, created_at: _, modified_at: __, ...given } = body;
        if (id !== before.id || slug !== before.slug) {
          throw new SignalboxError("invalid_request", { message: "id, slug: a provider cannot be renamed" });
        }
        const wanted = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
        const { provider, dropped } = await providers.update(accountId, id, wanted);
        return {
          result: show(provider),
          ...(dropped.length === 0 ? {} : { messages: [droppedNotice(dropped)] }),
        };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: `${PATH}/{provider_id}`,
      access: "gateway.edit",
      summary: "Delete a provider; later calls to it fail.",
      result,
      handler: async ({ params }) => ({
        result: show(await providers.delete(params.account_id, params.provider_id)),
      }),
    }),
  ];
}

function droppedNotice(names: readonly string[]): string {
  return `base_url changed: the stored values of ${names.join(", ")} were removed, because they were set for the old address; set headers again to use them at the new one`;
}

/** Header values may be credentials, so only their names are shown. */
function show({
  id,
  slug,
  details: shown,
  headers,
  createdAt,
  modifiedAt,
}: CustomProvider): z.input<typeof result> {
  return {
    id,
    slug,
    ...shown,
    headers:
      headers.length === 0
        ? ""
        : JSON.stringify(Object.fromEntries(headers.map(({ name }) => [name, HIDDEN]))),
    created_at: new Date(createdAt).toISOString(),
    modified_at: new Date(modifiedAt).toISOString(),
  };
}

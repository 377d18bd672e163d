/** Management routes of an account's own providers, shaped as the `customProviders` resource of the public `cloudflare` SDK. */
import { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import { pageOf, pageQuery } from "../settings/page.ts";
import type { CustomProvider, CustomProviders } from "./custom-providers.ts";

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
      summary: "List the account's own providers.",
      query: pageQuery,
      result: z.array(result),
      handler: ({ params, query }) => {
        const { items, resultInfo } = pageOf(providers.list(params["account_id"] ?? ""), query);
        return { result: items.map(show), resultInfo };
      },
    }),
    defineRoute({
      method: "POST",
      path: PATH,
      access: "gateway.edit",
      summary: "Add a provider, reached as `custom-<slug>`.",
      body: creation,
      result,
      handler: async ({ params, body: { slug, ...rest } }) => ({
        result: show(await providers.create(params["account_id"] ?? "", slug, rest)),
      }),
    }),
    defineRoute({
      method: "GET",
      path: `${PATH}/{provider_id}`,
      access: "gateway.read",
      summary: "Read one of the account's own providers.",
      result,
      handler: ({ params }) => ({
        result: show(providers.get(params["account_id"] ?? "", params["provider_id"] ?? "")),
      }),
    }),
    defineRoute({
      method: "PATCH",
      path: `${PATH}/{provider_id}`,
      access: "gateway.edit",
      summary: "Change a provider; its slug stays.",
      body: z.strictObject(details).partial(),
      result,
      handler: async ({ params, body }) => {
        const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
        return {
          result: show(
            await providers.update(params["account_id"] ?? "", params["provider_id"] ?? "", given),
          ),
        };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: `${PATH}/{provider_id}`,
      access: "gateway.edit",
      summary: "Remove a provider; calls to it fail from then on.",
      result,
      handler: async ({ params }) => ({
        result: show(await providers.delete(params["account_id"] ?? "", params["provider_id"] ?? "")),
      }),
    }),
  ];
}

/** Header values may be credentials: their names are shown, the values are not. */
function show(provider: CustomProvider): z.input<typeof result> {
  const { headers } = provider.details;
  return {
    id: provider.id,
    slug: provider.slug,
    ...provider.details,
    headers: headers === "" ? "" : JSON.stringify(hideValues(JSON.parse(headers) as Record<string, string>)),
    created_at: new Date(provider.createdAt).toISOString(),
    modified_at: new Date(provider.modifiedAt).toISOString(),
  };
}

function hideValues(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, "[secret]"]));
}

/** The prices that calls have, with where they come from, and the models in use that have none. */
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import type { CallLog } from "../../engines/call-log/index.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { GatewayLimits } from "./create-limits.ts";
import { furtherModels } from "./further-prices.ts";
import type { PriceOverrides } from "./price-table.ts";
import { LISTED_PROVIDERS, packageIdOf, presentPriceList } from "./prices-package.ts";

export interface PriceListRoutesParts {
  readonly gatewayLimits: Pick<GatewayLimits, "prices" | "accountPrices" | "priceRefresh">;
  readonly callLog: Pick<CallLog, "summarise">;
  readonly clock: Clock;
}

/** Models that were called within this time are in use. */
const IN_USE_MS = 30 * 86_400_000;

const listQuery = z.strictObject({
  /** Default: all providers. */
  provider: z.string().optional(),
});
const rates = z.record(z.string(), z.unknown());
const listResult = z.object({
  list: z.object({
    /** `release`: the list that the service was released with; `address`: that of `gateway.priceList`. */
    source: z.enum(["release", "address"]),
    /** When the list was read from the address. */
    read_at: z.string().nullable(),
    sha256: z.string().nullable(),
    /** Prices that the list moves too far; they wait for `gateway.priceList.acceptSha256`. */
    held: z.array(z.object({ provider: z.string(), model: z.string(), from: z.unknown(), to: z.unknown() })),
  }),
  prices: z.array(
    z.object({
      provider: z.string(),
      model: z.string(),
      source: z.enum(["account", "configuration", "list"]),
      price: rates,
    }),
  ),
  /** Models that were called within the last 30 days, and have no price. */
  missing: z.array(z.object({ provider: z.string(), model: z.string(), calls: z.number() })),
});

export function priceListRoutes({ gatewayLimits, callLog, clock }: PriceListRoutesParts): Route[] {
  const { prices, accountPrices, priceRefresh } = gatewayLimits;
  return [
    defineRoute({
      method: "GET",
      path: "/accounts/{account_id}/ai-gateway/prices/list",
      access: "gateway.read",
      summary: "All known prices with their source and date, and the models in use that have no price.",
      query: listQuery,
      result: listResult,
      handler: async ({ params, query: { provider } }) => {
        const accountId = params.account_id;
        const own = accountPrices.of(accountId) ?? {};
        const isWanted = (slug: string) => provider === undefined || provider === slug;
        const taken = priceRefresh?.taken ?? null;
        return {
          result: {
            list: {
              source: taken === null ? "release" : "address",
              read_at: taken === null ? null : new Date(taken.readAt).toISOString(),
              sha256: taken?.sha256 ?? null,
              held: [...(taken?.held ?? [])],
            },
            prices: [
              ...overridesOf(own, "account").filter((row) => isWanted(row.provider)),
              ...overridesOf(prices.configured, "configuration").filter((row) => isWanted(row.provider)),
              ...(await listRows()).filter((row) => isWanted(row.provider)),
            ],
            missing: (await missingOf(accountId, own)).filter((row) => isWanted(row.provider)),
          },
        };
      },
    }),
  ];

  async function listRows() {
    const list = new Map((await presentPriceList()).map((one) => [one.id, one]));
    const namesOf = (slug: string) => {
      const packageId = packageIdOf(slug) ?? "";
      const listed = (list.get(packageId)?.models ?? []).map(({ id }) => id);
      return new Set([...listed, ...furtherModels(packageId)]);
    };
    return LISTED_PROVIDERS.flatMap((slug) =>
      [...namesOf(slug)].flatMap((id) => {
        const found = prices.listPricesOf(slug, id);
        if (found === null || Object.keys(found).length === 0) return [];
        return [{ provider: slug, model: id, source: "list" as const, price: found }];
      }),
    );
  }

  async function missingOf(accountId: string, own: PriceOverrides) {
    const to = clock.now();
    const figures = await callLog.summarise({
      accountId,
      gatewayIds: null,
      from: to - IN_USE_MS,
      to,
      groupBy: ["provider", "model"],
    });
    return figures.flatMap(({ provider, model, calls, cost }) => {
      if (provider === null || model === null || model === "" || cost > 0) return [];
      return prices.isKnown(provider, model, own) ? [] : [{ provider, model, calls }];
    });
  }
}

function overridesOf<Source extends string>(table: PriceOverrides, source: Source) {
  return Object.entries(table).flatMap(([provider, models]) =>
    Object.entries(models).map(([model, price]) => ({ provider, model, source, price: { ...price } })),
  );
}

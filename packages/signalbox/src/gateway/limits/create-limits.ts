/** Creates the limits of the gateway with their books, and connects them with the owners of amounts: accounts, gateways and tokens. */
import { join } from "node:path";
import { z } from "zod";
import type { Tokens } from "../../accounts/index.ts";
import { type Config, priceTable } from "../../config/index.ts";
import type { ResourceEvents } from "../../contracts/resource-events.ts";
import type { Clock } from "../../core/clock.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database } from "../../database/database.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Gateway } from "../settings/gateway.ts";
import { type SpendRule, spendRules } from "../settings/gateway-settings.ts";
import { AccountSettings } from "./account-settings.ts";
import { LocalBooks } from "./books.ts";
import { type LimitOwner, MICRO } from "./limit-rule.ts";
import { gatewayOwner, Limits, tokenOwner } from "./limits.ts";
import { type PriceOverrides, PriceTable } from "./price-table.ts";
import { SpendJournal } from "./spend-journal.ts";

export interface GatewayLimitsParts {
  readonly config: Config;
  readonly database: Database;
  readonly clock: Clock;
  readonly steadyClock: Clock;
  readonly logger: Logger;
  readonly tokens: Tokens;
  readonly resourceEvents: ResourceEvents;
}

export interface GatewayLimits {
  readonly limits: Limits;
  readonly prices: PriceTable;
  readonly accountPrices: AccountSettings<PriceOverrides>;
  readonly accountRules: AccountSettings<readonly SpendRule[]>;
  start(gatewayExists: (owner: LimitOwner) => boolean): Promise<void>;
  stop(): Promise<void>;
  forgetGateway(gateway: Gateway): void;
}

export function createGatewayLimits(parts: GatewayLimitsParts): GatewayLimits {
  const { config, database, clock, steadyClock, logger, tokens, resourceEvents } = parts;
  const journal = new SpendJournal({
    folder: join(config.dataDir, "limits"),
    newId: ulid(),
    onError: (error) =>
      logger.error(
        { err: error },
        "cannot write the journal of spent amounts; kill -9 could lose the last second",
      ),
  });
  const books = new LocalBooks({
    database,
    journal,
    clock,
    onError: (error) => logger.error({ err: error }, "cannot write spend; retrying in a second"),
  });
  const prices = new PriceTable(config.file.gateway.prices, clock);
  const limits = new Limits({
    books,
    clock,
    steadyClock,
    onSoftBudget: ({ owner, name, limit }, used) =>
      logger.warn(
        { account: owner.accountId, owner: owner.key, spent: used / MICRO, limit: limit / MICRO },
        `a ${name} is exceeded`,
      ),
  });
  const accountRules = new AccountSettings<readonly SpendRule[]>(
    database,
    clock,
    "limits",
    limits.accountRules,
    (stored) => spendRules.parse(stored),
  );
  const accountPrices = new AccountSettings<PriceOverrides>(
    database,
    clock,
    "prices",
    prices.accountPrices,
    (stored) => priceTable.parse(stored),
  );
  const forget = (owner: LimitOwner) => {
    limits.forget(owner);
    books.forget(owner.accountId, owner.key);
  };
  resourceEvents.onDeleted(async ({ accountId, type, id }) => {
    if (type === "api_token") forget(tokenOwner({ accountId, id }));
  });
  return {
    limits,
    prices,
    accountPrices,
    accountRules,
    async start(gatewayExists) {
      await accountPrices.load();
      await accountRules.load();
      await books.start();
      // Owners that were deleted while this process was not running, or by a process that was killed.
      for (const { accountId, owner } of books.idleOwners) {
        const isThere =
          owner === "account" ||
          (owner.startsWith("token ")
            ? tokens.find(accountId, owner.slice("token ".length)) !== undefined
            : gatewayExists({ accountId, key: owner }));
        if (!isThere) forget({ accountId, key: owner });
      }
    },
    stop: () => books.stop(),
    forgetGateway: (gateway) => forget(gatewayOwner(gateway)),
  };
}

export const creditBody = z.strictObject({
  /** The rule; not needed when there is only one without a window. */
  rule: z.string().optional(),
  /** US dollars to add. Amounts are counted in millionths. */
  amount: z.number().min(0.000_001).max(1_000_000_000),
});

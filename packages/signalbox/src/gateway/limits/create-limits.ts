/** Creates the limits of the gateway with their books, and connects them with the owners of amounts: accounts, gateways and tokens. */
import { SignalboxError } from "@signalbox/protocol";
import { join } from "node:path";
import { z } from "zod";
import type { Tokens } from "../../accounts/index.ts";
import { type Config, priceTable } from "../../config/index.ts";
import type { ResourceEvents } from "../../contracts/resource-events.ts";
import type { Clock } from "../../core/clock.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database } from "../../database/database.ts";
import type { SharedSettings } from "../../database/shared-settings.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Gateway } from "../settings/gateway.ts";
import { type SpendRule, spendRules } from "../settings/gateway-settings.ts";
import { AccountSettings } from "./account-settings.ts";
import type { LimitsParts } from "./call-rules.ts";
import { LocalBooks } from "./books.ts";
import { type LimitOwner, MICRO } from "./limit-rule.ts";
import { gatewayOwner, Limits, tokenOwner } from "./limits.ts";
import { type PriceOverrides, PriceTable } from "./price-table.ts";
import { SharedBooks } from "./shared-books.ts";
import { SpendJournal } from "./spend-journal.ts";

export interface GatewayLimitsParts {
  readonly config: Config;
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
  readonly steadyClock: Clock;
  readonly logger: Logger;
  readonly tokens: Tokens;
  readonly resourceEvents: ResourceEvents;
  /** The present identity of this node in the database that nodes share; null with SQLite. */
  readonly incarnation: (() => string) | null;
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
  const { config, clock, logger, tokens, resourceEvents } = parts;
  const opened = openBooks(parts);
  const { books } = opened;
  const prices = new PriceTable(config.file.gateway.prices, clock);
  const limits = new Limits({
    ...opened,
    onSoftBudget: ({ owner, name, limit }, used) =>
      logger.warn(
        { account: owner.accountId, owner: owner.key, spent: used / MICRO, limit: limit / MICRO },
        `a ${name} is exceeded`,
      ),
  });
  const accountRules = new AccountSettings<readonly SpendRule[]>(
    parts,
    "limits",
    limits.accountRules,
    (stored) => spendRules.parse(stored),
  );
  const accountPrices = new AccountSettings<PriceOverrides>(parts, "prices", prices.accountPrices, (stored) =>
    priceTable.parse(stored),
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
      for (const { accountId, owner } of await books.idleOwners()) {
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

type OpenedBooks = Pick<LimitsParts, "clock" | "steadyClock" | "shares"> & {
  readonly books: LocalBooks | SharedBooks;
};

/** Amounts are shared with all nodes of the database, or belong to this process. */
function openBooks({
  config,
  database,
  clock,
  steadyClock,
  logger,
  incarnation,
}: GatewayLimitsParts): OpenedBooks {
  const folder = join(config.dataDir, "limits");
  if (incarnation !== null) {
    const books = new SharedBooks({
      database,
      clock,
      incarnation,
      earlierJournal: folder,
      onError: (error) => {
        // The database itself reports that it cannot be reached.
        if (!(error instanceof SignalboxError && error.id === "storage_unavailable"))
          logger.error({ err: error }, "cannot exchange amounts of limits; retrying");
      },
    });
    return { books, clock: books.clock, steadyClock: books.clock, shares: books.shares };
  }
  const journal = new SpendJournal({
    folder,
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
  return { books, clock, steadyClock, shares: null };
}

export const creditBody = z.strictObject({
  /** The rule; not needed when there is only one without a window. */
  rule: z.string().optional(),
  /** US dollars to add. Amounts are counted in millionths. */
  amount: z.number().min(0.000_001).max(1_000_000_000),
});

/** Creates the limits of the gateway with their ledger, and connects them with the owners of amounts: accounts, gateways and tokens. */
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
import type { Ledger } from "./ledger.ts";
import { type LimitOwner, type LimitRule, MICRO } from "./limit-rule.ts";
import { gatewayOwner, Limits, tokenOwner } from "./limits.ts";
import { LocalLedger } from "./local-ledger.ts";
import { PriceRefresh } from "./price-refresh.ts";
import { type PriceOverrides, PriceTable } from "./price-table.ts";
import { SharedLedger } from "./shared-ledger.ts";
import { SpendJournal } from "./spend-journal.ts";
import { SpendStore } from "./spend-store.ts";

export interface GatewayLimitsParts {
  readonly config: Config;
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
  readonly steadyClock: Clock;
  readonly logger: Logger;
  readonly tokens: Tokens;
  readonly resourceEvents: ResourceEvents;
  /** The current identity of this node in the database that nodes share; null with SQLite. */
  readonly incarnation: (() => string) | null;
}

export interface GatewayLimits {
  readonly limits: Limits;
  readonly ledger: Ledger;
  readonly prices: PriceTable;
  readonly accountPrices: AccountSettings<PriceOverrides>;
  readonly accountRules: AccountSettings<readonly SpendRule[]>;
  /** Null without a configured address. */
  readonly priceRefresh: PriceRefresh | null;
  start(gatewayExists: (owner: LimitOwner) => boolean): Promise<void>;
  stop(): Promise<void>;
  forgetGateway(gateway: Gateway): void;
}

export function createGatewayLimits(parts: GatewayLimitsParts): GatewayLimits {
  const { config, clock, tokens, resourceEvents } = parts;
  const ledger = createLedger(parts);
  const prices = new PriceTable(config.file.gateway.prices, clock);
  const priceRefresh = createPriceRefresh(parts, prices);
  const limits = new Limits(ledger);
  const accountRules = new AccountSettings<readonly SpendRule[]>(
    parts,
    "limits",
    limits.accountRules,
    (stored) => spendRules.parse(stored),
  );
  const accountPrices = new AccountSettings<PriceOverrides>(parts, "prices", prices.accountPrices, (stored) =>
    priceTable.parse(stored),
  );
  resourceEvents.onDeleted(async ({ accountId, type, id }) => {
    if (type === "api_token") ledger.forget(tokenOwner({ accountId, id }));
  });
  return {
    limits,
    ledger,
    prices,
    accountPrices,
    accountRules,
    priceRefresh,
    async start(gatewayExists) {
      await priceRefresh?.start();
      await accountPrices.load();
      await accountRules.load();
      await ledger.start();
      // Owners that were deleted while this process was not running, or by a process that was killed.
      for (const owner of await ledger.idleOwners()) {
        const { accountId, key } = owner;
        const isThere =
          key === "account" ||
          (key.startsWith("token ")
            ? tokens.find(accountId, key.slice("token ".length)) !== undefined
            : gatewayExists(owner));
        if (!isThere) ledger.forget(owner);
      }
    },
    async stop() {
      await priceRefresh?.stop();
      await ledger.stop();
    },
    forgetGateway: (gateway) => ledger.forget(gatewayOwner(gateway)),
  };
}

function createPriceRefresh(
  { config, clock, logger }: GatewayLimitsParts,
  prices: PriceTable,
): PriceRefresh | null {
  const keys = config.file.gateway.priceList;
  if (keys === undefined) return null;
  return new PriceRefresh({
    url: keys.url,
    acceptSha256: keys.acceptSha256,
    dataDir: config.dataDir,
    clock,
    onChanged: () => prices.forgetListPrices(),
    onHeld: (held, sha256) =>
      logger.warn(
        { sha256, models: held.map(({ provider, model }) => `${provider}/${model}`).slice(0, MAX_NAMED) },
        `the price list moves ${held.length} prices by more than three times; they keep their values until gateway.priceList.acceptSha256 is this hash`,
      ),
    onError: (error) => logger.warn({ err: error }, "cannot read the price list; the present prices stay"),
  });
}

/** Models that the log names. */
const MAX_NAMED = 50;

/** Amounts are shared with all nodes of the database, or belong to this process. */
function createLedger({
  config,
  database,
  clock,
  steadyClock,
  logger,
  incarnation,
}: GatewayLimitsParts): Ledger {
  const folder = join(config.dataDir, "limits");
  const onSoftBudget = ({ owner, name, limit }: LimitRule, used: number) =>
    logger.warn(
      { account: owner.accountId, owner: owner.key, spent: used / MICRO, limit: limit / MICRO },
      `a ${name} is exceeded`,
    );
  if (incarnation !== null) {
    return new SharedLedger({
      database,
      clock,
      incarnation,
      earlierJournal: folder,
      onSoftBudget,
      onError: (error) => {
        // The database itself reports that it cannot be reached.
        if (!(error instanceof SignalboxError && error.id === "storage_unavailable"))
          logger.error({ err: error }, "cannot exchange amounts of limits; retrying");
      },
    });
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
  const store = new SpendStore({
    database,
    journal,
    clock,
    onError: (error) => logger.error({ err: error }, "cannot write spend; retrying in a second"),
  });
  return new LocalLedger({ store, clock, steadyClock, onSoftBudget });
}

export const creditBody = z.strictObject({
  /** The rule; not needed when there is only one without a window. */
  rule: z.string().optional(),
  /** US dollars to add. Amounts are counted in millionths. */
  amount: z.number().min(0.000_001).max(1_000_000_000),
});

/** Opens accounts, tokens, sessions and the authenticator. */
import { SignalboxError } from "@signalbox/protocol";
import {
  Accounts,
  Authenticator,
  BrowserSessions,
  LoginCodes,
  openRootToken,
  type RootToken,
  Sessions,
  Tokens,
} from "../accounts/index.ts";
import type { Config } from "../config/index.ts";
import type { ResourceEvents } from "../contracts/resource-events.ts";
import type { Clock } from "../core/clock.ts";
import { DEFAULT_ACCOUNT } from "../core/default-account.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Closer } from "./close-all.ts";
import type { Running } from "./running.ts";
import type { Storage } from "./storage.ts";
import { clusterOf } from "./topology.ts";

export interface Identity {
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly sessions: BrowserSessions;
  readonly authenticator: Authenticator;
  readonly rootToken: RootToken;
}

export interface IdentityOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly resourceEvents: ResourceEvents;
  readonly running: Pick<Running, "gatewayExists" | "hasDashboard">;
}

export async function openIdentity(
  { databases, dataFolder, settings, topology }: Storage,
  options: IdentityOptions,
  closers: Closer[],
): Promise<Identity> {
  const { config, clock, logger, running, resourceEvents } = options;
  const database = databases.identity;
  const lease = clusterOf(topology)?.lease ?? null;
  const accounts = new Accounts(database, clock, settings);
  await accounts.load();
  if (accounts.find(DEFAULT_ACCOUNT) === undefined) await createDefaultAccount(accounts);
  const gatewayExists = (accountId: string, gatewayId: string) => running.gatewayExists(accountId, gatewayId);
  const tokens = new Tokens(database, clock, resourceEvents, gatewayExists, settings);
  await tokens.load();
  tokens.start((error) =>
    logger.error({ err: error }, "cannot store the times of last use of tokens; retrying within a minute"),
  );
  closers.push({ close: () => tokens.stop() });
  const rootToken = openRootToken(config.rootToken, dataFolder.file("root-token"));
  const stored = new Sessions(database, clock, tokens, rootToken.secret, settings);
  await stored.load();
  const sessions = new BrowserSessions(stored, new LoginCodes(database, clock), {
    allowedHosts: config.file.dashboard.allowedHosts,
    acceptsSessions: (request) => running.hasDashboard(request),
  });
  const authenticator = new Authenticator({
    rootToken: rootToken.secret,
    tokens,
    sessions,
    ...(lease === null ? {} : { whenFresh: () => lease.check() }),
  });
  return { accounts, tokens, sessions, authenticator, rootToken };
}

async function createDefaultAccount(accounts: Accounts): Promise<void> {
  try {
    await accounts.create({ id: DEFAULT_ACCOUNT });
  } catch (error) {
    // Another node, which starts at the same time, has created it.
    if (!(error instanceof SignalboxError && error.id === "conflict")) throw error;
    await accounts.load();
  }
}

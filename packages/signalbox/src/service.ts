/**
 * The composition root: the only file that builds everything, and the one that knows the order of starting and stopping.
 *
 * Start: data folder → database and schema → accounts and tokens → areas → listener.
 * Stop:  listener drains → areas drain → running requests end or the grace period passes → areas stop → database → data folder.
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Registry } from "prom-client";
import {
  Accounts,
  accountRoutes,
  Authenticator,
  FailureThrottle,
  openRootToken,
  openSealing,
  openSecretFile,
  ownOrigin,
  type RootToken,
  Sessions,
  Tokens,
} from "./accounts/index.ts";
import { BASE_SCHEMA, createAgentsArea, RESERVED_NAME } from "./agents/index.ts";
import type { AreaModule, FirstCommand } from "./area-module.ts";
import { closeAll, type Closer } from "./close-all.ts";
import type { Config } from "./config/index.ts";
import { type Clock, steadyClock, systemClock } from "./core/clock.ts";
import { DEFAULT_ACCOUNT } from "./core/default-account.ts";
import type { Sealing } from "./core/sealing.ts";
import { createDashboardArea, loginPath } from "./dashboard/index.ts";
import { exposureWarnings, requireOperator } from "./exposure.ts";
import { createGatewayArea, type GatewayArea } from "./gateway/index.ts";
import {
  buildOpenApi,
  createHealth,
  createManagement,
  createOperations,
  type Front,
  openFront,
} from "./http/index.ts";
import { OutgoingWebhooks } from "./outgoing/index.ts";
import { migrate } from "./database/migrate.ts";
import { type CallLog, SqliteCallLog } from "./engines/call-log/index.ts";
import type { Database } from "./database/database.ts";
import { type InstanceStore, openInstanceStore } from "./engines/instance-store/index.ts";
import { ResourceEvents } from "./contracts/resource-events.ts";
import { DataFolder } from "./database/sqlite/data-folder.ts";
import { SqliteDatabase } from "./database/sqlite/sqlite-database.ts";
import { createTagsArea } from "./tags/index.ts";
import type { Logger } from "./telemetry/logger.ts";
import { createHttpMetrics, createRegistry } from "./telemetry/metrics.ts";
import { StorageHealth } from "./telemetry/storage-health.ts";
import type { UncaughtErrors } from "./telemetry/uncaught-errors.ts";
import { VERSION } from "./version.ts";
import { createWebhooksArea, WebhookAgent } from "./webhooks/index.ts";

export interface ServiceOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** A clock that is never set. Default: the process's own; tests that give a `clock` move both with it. */
  readonly steadyClock?: Clock;
  /**
   * Makes a secret for generic webhooks, in the data folder, when the environment gives none and the database is the embedded one; so that the
   * first webhook of a newcomer works. Default: such webhooks are refused.
   */
  readonly makesWebhookSecret?: boolean;
  /** Counted in the metrics; only `serve` watches for them, since they are the whole process's. */
  readonly uncaughtErrors?: UncaughtErrors;
  /** Ends the process when storage can no longer be trusted; tests replace it. */
  readonly onFatal: (error: Error) => void;
}

/** What areas are built from. */
export interface AreaParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly steadyClock: Clock;
  readonly sealing: Sealing;
  readonly database: Database;
  readonly dataFolder: DataFolder;
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly authenticator: Authenticator;
  readonly resourceEvents: ResourceEvents;
  readonly callLog: CallLog;
  readonly instanceStore: InstanceStore;
  readonly registry: Registry;
  readonly onFatal: (error: Error) => void;
}

export interface Service {
  /** Where traffic goes. */
  readonly url: string;
  /** Where the dashboard and the management interface are; the same as `url` unless they have an address of their own. */
  readonly adminUrl: string;
  /** What an operator should know about how open the service is; empty when only this machine reaches it. */
  readonly warnings: readonly string[];
  readonly rootToken: RootToken;
  /** Commands that work as pasted; the token is named by a shell expression, so that it is not on the screen at each start. */
  readonly firstCommands: readonly FirstCommand[];
  /** A link that logs one browser into the dashboard as root, once, within ten minutes. */
  createLoginLink(): string;
  /** Graceful; calling it twice is the same as once. */
  stop(): Promise<void>;
}

/** Wrong tokens a minute and address before they are answered 429: management clients that hold an old token repeat it. */
const MAX_WRONG_TOKENS = 300;
/** Wrong tokens and codes a minute and address at the dashboard's login: people type and paste. */
const MAX_WRONG_LOGINS = 20;

/** Scheme, host and port of the two things that may have different ones. */
interface Origins {
  readonly traffic: string;
  readonly administration: string;
}

export async function startService(options: ServiceOptions): Promise<Service> {
  const { logger } = options;
  const clock = options.clock ?? systemClock;
  const closers: Closer[] = [];
  try {
    const dataFolder = DataFolder.open(options.config.dataDir);
    closers.push({ close: () => dataFolder.close() });
    const database = await openDatabase(options, dataFolder);
    closers.push({ close: () => database.close() });
    await migrate(database);
    // Not before: a process that is refused because another one owns the database must leave nothing behind.
    const config =
      options.makesWebhookSecret === true ? withWebhookSecret(options.config, dataFolder) : options.config;

    const resourceEvents = new ResourceEvents();
    const accounts = new Accounts(database, clock);
    await accounts.load();
    if (accounts.find(DEFAULT_ACCOUNT) === undefined) await accounts.create({ id: DEFAULT_ACCOUNT });
    const tokens = new Tokens(database, clock, resourceEvents, (accountId, gatewayId) =>
      gateway.exists(accountId, gatewayId),
    );
    await tokens.load();
    tokens.start((error) => logger.error({ err: error }, "last uses of tokens could not be stored"));
    closers.push({ close: () => tokens.stop() });
    const rootToken = openRootToken(config.rootToken, dataFolder.file("root-token"));
    const sessions = new Sessions(database, clock, tokens, rootToken.secret);
    await sessions.load();
    const { allowedHosts } = config.file.dashboard;
    const authenticator = new Authenticator({
      rootToken: rootToken.secret,
      tokens,
      sessions,
      allowedHosts,
      acceptsSessions: (request) => config.admin === null || request.socket.localPort === front?.adminPort,
    });
    const wrongTokens = new FailureThrottle(MAX_WRONG_TOKENS);

    const rootTokenExpression =
      config.rootToken === undefined ? `$(cat '${dataFolder.file("root-token")}')` : "$SIGNALBOX_ROOT_TOKEN";
    // An area without a door of its own is used through the management interface.
    const firstCommands = ({ traffic, administration }: Origins, tokenExpression: string) =>
      areas.flatMap(({ card = "agents", mounts: doors, firstCommands: of }) =>
        (of?.(doors.length > 0 ? traffic : administration, tokenExpression) ?? []).map((command) => ({
          card,
          ...command,
        })),
      );
    let front: Front | undefined;
    const publicUrl = config.file.listener.publicUrl?.replace(/\/+$/, "");
    /** The configured address, else those the request's sender sees, unless the Host is none of ours. */
    const originsFor = (request: IncomingMessage): Origins => {
      const { url = "", adminUrl = "" } = front ?? {};
      const administration = ownOrigin(request, allowedHosts) ?? adminUrl;
      if (url !== adminUrl) return { traffic: publicUrl ?? url, administration };
      return { traffic: publicUrl ?? administration, administration: publicUrl ?? administration };
    };

    const callLog = await openCallLog(config, dataFolder, clock, options);
    closers.push({ close: () => callLog.close() });
    const instanceStore = await openAgentsStore(config, dataFolder, options);
    closers.push({ close: () => instanceStore.close(), canStall: true });

    const registry = createRegistry();
    options.uncaughtErrors?.register(registry);
    const health = new StorageHealth(registry, { database, "call log": callLog, agents: instanceStore });
    const { gateway, agents, webhooks, areas } = createAreas({
      ...options,
      config,
      clock,
      steadyClock: options.steadyClock ?? options.clock ?? steadyClock,
      sealing: openSealing(config.encryptionKeys, dataFolder.file("encryption-key")),
      database,
      dataFolder,
      accounts,
      tokens,
      authenticator,
      resourceEvents,
      callLog,
      instanceStore,
      registry,
    });
    const dashboard = createDashboardArea({
      sessions,
      authenticator,
      accounts,
      allowedHosts,
      version: VERSION,
      failures: new FailureThrottle(MAX_WRONG_LOGINS),
      trafficUrl: () => (front === undefined || front.url === front.adminUrl ? null : front.url),
      firstCommands: (request, tokenExpression) => firstCommands(originsFor(request), tokenExpression),
      rootTokenExpression,
    });
    areas.push(dashboard);
    for (const area of areas) {
      await area.start?.();
      closers.push({ close: () => area.stop?.(), canStall: area.waitsForInstances === true });
    }

    let isStopping = false;
    const routes = [...accountRoutes(accounts, tokens), ...areas.flatMap((area) => area.routes)];
    const problems = () => (isStopping ? ["stopping"] : health.problems());
    const mounts = (chosen: readonly AreaModule[]) => chosen.flatMap((area) => area.mounts);
    front = await openFront({
      traffic: mounts([gateway, webhooks]),
      shared: agents.mounts,
      health: createHealth(problems),
      administration: [
        createOperations({
          registry,
          problems,
          openApi: () => buildOpenApi(routes, VERSION),
          authorise: (request, what) => {
            if (front?.isAdminExposed === false || (what === "metrics" && config.isMetricsPublic)) return;
            requireOperator(authenticator.fromRequest(request), what);
          },
        }),
        createManagement({
          routes,
          authenticate: (request) => authenticator.fromRequest(request),
          watch: (principal, onEnd) => authenticator.watch(principal, onEnd),
          onWrongCredential: (request) => wrongTokens.record(request.socket.remoteAddress),
          trafficOrigin: (request) => originsFor(request).traffic,
          accountExists: (id) => accounts.find(id) !== undefined,
          maxBodyBytes: config.file.listener.maxBodyBytes,
        }),
        ...dashboard.mounts,
      ],
      address: { host: config.host, port: config.port },
      adminAddress: config.admin,
      limits: config.file.listener,
      metrics: createHttpMetrics(registry),
      logger,
    });
    const openedFront = front;
    const { url, adminUrl } = openedFront;
    dataFolder.announce({ url, pid: process.pid, ...(adminUrl === url ? {} : { adminUrl }) });
    const warnings = front.isExposed ? exposureWarnings(config, gateway) : [];
    for (const warning of warnings) logger.warn(warning);
    if (config.webhookSecretFile !== undefined) {
      logger.info(
        { file: config.webhookSecretFile },
        `${WEBHOOK_SECRET} is not set: generic webhooks are verified with the secret in this file`,
      );
    }

    let stopped: Promise<void> | undefined;
    return {
      url,
      adminUrl,
      warnings,
      rootToken,
      firstCommands: firstCommands(
        {
          traffic: publicUrl ?? url,
          administration: url === adminUrl ? (publicUrl ?? adminUrl) : adminUrl,
        },
        rootTokenExpression,
      ),
      createLoginLink: () => adminUrl + loginPath(sessions.createLoginCode().code),
      stop() {
        stopped ??= (async () => {
          isStopping = true;
          openedFront.drain();
          await Promise.all(areas.map(async (area) => area.drain?.()));
          await openedFront.close(config.file.listener.gracePeriodMs);
          await closeAll(closers, instanceStore);
        })();
        return stopped;
      },
    };
  } catch (error) {
    // Why it could not start is what the operator needs to know; what then failed to close goes to the log.
    await closeAll(closers, null).catch((err: unknown) =>
      logger.error({ err }, "closing after a failed start"),
    );
    throw error;
  }
}

const WEBHOOK_SECRET = "WEBHOOK_SECRET";

/**
 * The settings with a secret for generic webhooks: the environment's, else one that is made once and kept in the data folder. Not on
 * PostgreSQL, where the data folder is not the whole of the service: what is made on one machine would not be known on the next.
 */
function withWebhookSecret(config: Config, dataFolder: DataFolder): Config {
  if (config.environment[WEBHOOK_SECRET] || config.databaseUrl !== undefined) return config;
  const file = dataFolder.file("webhook-secret");
  const { text } = openSecretFile(file, () => randomBytes(32).toString("hex"));
  return {
    ...config,
    environment: { ...config.environment, [WEBHOOK_SECRET]: text },
    webhookSecretFile: file,
  };
}

async function openDatabase(
  { config, logger, onFatal }: ServiceOptions,
  dataFolder: DataFolder,
): Promise<Database> {
  if (config.databaseUrl === undefined) {
    return SqliteDatabase.open(dataFolder.file("signalbox.db"), onFatal);
  }
  // Loaded only here: most installations never need the driver.
  const { PostgresDatabase } = await import("./database/postgres/postgres-database.ts");
  return PostgresDatabase.open(config.databaseUrl.reveal(), onFatal, {
    onWait: (error) =>
      logger.warn({ err: error }, "PostgreSQL cannot be reached yet: trying again for half a minute"),
  });
}

function openCallLog(
  config: Config,
  dataFolder: DataFolder,
  clock: Clock,
  { logger, onFatal }: ServiceOptions,
): Promise<CallLog> {
  return SqliteCallLog.open({
    ...config.file.gateway.logs,
    folder: dataFolder.file("logs"),
    clock,
    onError: (error) => logger.error({ err: error }, "call log"),
    onRecovery: (droppedCalls) => logger.warn({ droppedCalls }, "calls are written to the log again"),
    onTrimmed: () =>
      logger.warn(
        "stored calls have reached gateway.logs.maxTotalBytes: the oldest bodies are being removed",
      ),
    onFatal,
  });
}

function openAgentsStore(
  config: Config,
  dataFolder: DataFolder,
  { logger, onFatal }: ServiceOptions,
): Promise<InstanceStore> {
  const { store, journalFileBytes } = config.file.agents;
  return openInstanceStore(store, {
    folder: dataFolder.file("agents"),
    baseSchema: BASE_SCHEMA,
    reservedName: RESERVED_NAME,
    segmentBytes: journalFileBytes,
    onFailure: onFatal,
    onStall: (error) => logger.error({ err: error }, "disk full: agent writes are paused"),
  });
}

interface Areas {
  readonly gateway: GatewayArea;
  readonly agents: AreaModule;
  readonly webhooks: AreaModule;
  /** All of them, in the order of their start. */
  readonly areas: AreaModule[];
}

function createAreas(parts: AreaParts): Areas {
  const tags = createTagsArea(parts);
  const agents = createAgentsArea({
    ...parts,
    outgoing: new OutgoingWebhooks({ ...parts.config.file.outgoing, clock: parts.clock }),
    builtInAgents: [WebhookAgent],
    tags: tags.lookup,
    tagFeed: tags.feed,
  });
  const webhooks = createWebhooksArea({ ...parts, agents: agents.door, tags: tags.lookup });
  const gateway = createGatewayArea({ ...parts, tags: tags.lookup });
  return { gateway, agents, webhooks, areas: [gateway, agents, webhooks, tags] };
}

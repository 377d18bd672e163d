/**
 * The composition root: the only file that builds everything, and the one that knows the order of starting and stopping.
 *
 * Start: data folder → database and schema → accounts and tokens → areas → listener.
 * Stop:  listener drains → areas drain → running requests end or the grace period passes → areas stop → database → data folder.
 */
import { randomBytes } from "node:crypto";
import type { Registry } from "prom-client";
import {
  Accounts,
  accountRoutes,
  Authenticator,
  openRootToken,
  openSecretFile,
  type RootToken,
  Sessions,
  Tokens,
} from "./accounts/index.ts";
import { createAgentsArea } from "./agents/index.ts";
import type { AreaModule, FirstCommand } from "./area-module.ts";
import type { Config } from "./config/index.ts";
import { type Clock, systemClock } from "./core/clock.ts";
import { createDashboardArea, loginPath } from "./dashboard/index.ts";
import { createGatewayArea } from "./gateway/index.ts";
import { buildOpenApi, createManagement, createOperations, Dispatcher, Listener } from "./http/index.ts";
import { OutgoingWebhooks } from "./outgoing/index.ts";
import { migrate } from "./storage/migrate.ts";
import type { CallLog } from "./storage/ports/call-log.ts";
import type { Database } from "./storage/ports/database.ts";
import type { InstanceStore } from "./storage/ports/instance-store.ts";
import { ResourceEvents } from "./storage/ports/resource-events.ts";
import { SqliteCallLog } from "./storage/sqlite/call-log/sqlite-call-log.ts";
import { DataFolder } from "./storage/sqlite/data-folder.ts";
import { InstanceFiles } from "./storage/sqlite/instances/instance-files.ts";
import { SqliteDatabase } from "./storage/sqlite/sqlite-database.ts";
import { createTagsArea } from "./tags/index.ts";
import type { Logger } from "./telemetry/logger.ts";
import { createHttpMetrics, createRegistry } from "./telemetry/metrics.ts";
import { VERSION } from "./version.ts";
import { createWebhooksArea, WebhookAgent } from "./webhooks/index.ts";

export interface ServiceOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock?: Clock;
  /**
   * Makes a secret for generic webhooks, in the data folder, when the environment gives none and the database is the embedded one; so that the
   * first webhook of a newcomer works. Default: such webhooks are refused.
   */
  readonly makesWebhookSecret?: boolean;
  /** Ends the process when storage can no longer be trusted; tests replace it. */
  readonly onFatal: (error: Error) => void;
}

/** What areas are built from. */
export interface AreaParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
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
  readonly url: string;
  readonly rootToken: RootToken;
  /** Commands that work as pasted; the token is named by a shell expression, so that it is not on the screen at each start. */
  readonly firstCommands: readonly FirstCommand[];
  /** A link that logs one browser into the dashboard as root, once, within ten minutes. */
  createLoginLink(): string;
  /** Graceful; calling it twice is the same as once. */
  stop(): Promise<void>;
}

const DEFAULT_ACCOUNT = "default";

export async function startService(options: ServiceOptions): Promise<Service> {
  const { logger } = options;
  const clock = options.clock ?? systemClock;
  const closers: (() => void | Promise<void>)[] = [];
  try {
    const dataFolder = DataFolder.open(options.config.dataDir);
    closers.push(() => dataFolder.close());
    const database = await openDatabase(options.config, dataFolder, options.onFatal);
    closers.push(() => database.close());
    await migrate(database);
    // Not before: a process that is refused because another one owns the database must leave nothing behind.
    const config =
      options.makesWebhookSecret === true ? withWebhookSecret(options.config, dataFolder) : options.config;

    const resourceEvents = new ResourceEvents();
    const accounts = new Accounts(database, clock);
    await accounts.load();
    if (accounts.find(DEFAULT_ACCOUNT) === undefined) await accounts.create({ id: DEFAULT_ACCOUNT });
    const tokens = new Tokens(database, clock, resourceEvents);
    await tokens.load();
    tokens.start();
    closers.push(() => tokens.stop());
    const rootToken = openRootToken(config.rootToken, dataFolder.file("root-token"));
    const sessions = new Sessions(database, clock, tokens);
    await sessions.load();
    const { allowedHosts } = config.file.dashboard;
    const authenticator = new Authenticator({
      rootToken: rootToken.secret,
      tokens,
      sessions,
      allowedHosts,
    });

    const rootTokenExpression =
      config.rootToken === undefined ? `$(cat '${dataFolder.file("root-token")}')` : "$SIGNALBOX_ROOT_TOKEN";
    const firstCommands = (url: string, tokenExpression: string) =>
      areas.flatMap(({ card = "agents", firstCommands: of }) =>
        (of?.(url, tokenExpression) ?? []).map((command) => ({ card, ...command })),
      );

    const callLog = await openCallLog(config, dataFolder, clock, options);
    closers.push(() => callLog.close());
    const instanceStore = openInstanceStore(config, dataFolder, options);
    closers.push(() => instanceStore.close());

    const registry = createRegistry();
    const areas = createAreas({
      ...options,
      config,
      clock,
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
    areas.push(
      createDashboardArea({
        sessions,
        authenticator,
        accounts,
        allowedHosts,
        version: VERSION,
        firstCommands,
        rootTokenExpression,
      }),
    );
    for (const area of areas) {
      await area.start?.();
      closers.push(() => area.stop?.());
    }

    let isStopping = false;
    const routes = [...accountRoutes(accounts, tokens), ...areas.flatMap((area) => area.routes)];
    const metrics = createHttpMetrics(registry);
    const dispatcher = new Dispatcher(
      [
        createOperations({
          registry,
          whyNotReady: () => (isStopping ? "stopping" : null),
          openApi: () => buildOpenApi(routes, VERSION),
        }),
        createManagement({
          routes,
          authenticate: (request) => authenticator.fromRequest(request),
          accountExists: (id) => accounts.find(id) !== undefined,
          maxBodyBytes: config.file.listener.maxBodyBytes,
        }),
        ...areas.flatMap((area) => area.mounts),
      ],
      metrics,
      logger,
    );
    const listener = new Listener(dispatcher, config.file.listener, metrics);
    const address = await listener.listen(config.host, config.port);
    const url = `http://${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;
    dataFolder.announce({ url, pid: process.pid });
    if (config.webhookSecretFile !== undefined) {
      logger.info(
        { file: config.webhookSecretFile },
        `${WEBHOOK_SECRET} is not set: generic webhooks are verified with the secret in this file`,
      );
    }

    let stopped: Promise<void> | undefined;
    return {
      url,
      rootToken,
      firstCommands: firstCommands(url, rootTokenExpression),
      createLoginLink: () => url + loginPath(sessions.createLoginCode().code),
      stop() {
        stopped ??= (async () => {
          isStopping = true;
          listener.drain();
          await Promise.all(areas.map(async (area) => area.drain?.()));
          await listener.close(config.file.listener.gracePeriodMs);
          await closeAll(closers);
        })();
        return stopped;
      },
    };
  } catch (error) {
    await closeAll(closers);
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
  config: Config,
  dataFolder: DataFolder,
  onFatal: (error: Error) => void,
): Promise<Database> {
  if (config.databaseUrl === undefined) {
    return SqliteDatabase.open(dataFolder.file("signalbox.db"), onFatal);
  }
  // Loaded only here: most installations never need the driver.
  const { PostgresDatabase } = await import("./storage/postgres/postgres-database.ts");
  return PostgresDatabase.open(config.databaseUrl.reveal(), onFatal);
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
    onFatal,
  });
}

function openInstanceStore(
  config: Config,
  dataFolder: DataFolder,
  { logger, onFatal }: ServiceOptions,
): InstanceStore {
  return new InstanceFiles(dataFolder.file("agents"), {
    segmentBytes: config.file.agents.journalFileBytes,
    onFailure: onFatal,
    onStall: (error) => logger.error({ err: error }, "the disk is full: agents wait until there is room"),
  });
}

function createAreas(parts: AreaParts): AreaModule[] {
  const tags = createTagsArea(parts);
  const agents = createAgentsArea({
    ...parts,
    outgoing: new OutgoingWebhooks({ ...parts.config.file.outgoing, clock: parts.clock }),
    builtInAgents: [WebhookAgent],
    tags: tags.lookup,
    tagFeed: tags.feed,
  });
  const webhooks = createWebhooksArea({ ...parts, agents: agents.door, tags: tags.lookup });
  return [createGatewayArea({ ...parts, tags: tags.lookup }), agents, webhooks, tags];
}

/** Last opened, first closed. */
async function closeAll(closers: readonly (() => void | Promise<void>)[]): Promise<void> {
  for (const close of closers.toReversed()) await close();
}

/**
 * The composition root: builds the service, and defines the order of start and stop.
 *
 * Start: storage → accounts and tokens → areas → listeners.
 * Stop:  not ready, still serving (`listener.lameDuckMs`, and until other nodes have this one's instances) → listeners drain → areas drain → running requests end or the grace period passes → areas stop → storage closes.
 */
import { FailureThrottle, openSealing } from "./accounts/index.ts";
import { accountRoutes, tokenRoutes } from "./accounts-api/index.ts";
import type { AgentClass } from "./agents/index.ts";
import type { AreaModule } from "./area-module.ts";
import type { AuditArea } from "./audit/index.ts";
import { checkCluster, checkWorkerAccess, type Config } from "./config/index.ts";
import { ResourceEvents } from "./contracts/resource-events.ts";
import { awakeSignal, awakeTime } from "./core/awake-time.ts";
import { type Clock, steadyClock, systemClock } from "./core/clock.ts";
import { createDashboardArea, loginPath } from "./dashboard/index.ts";
import type { HttpRequest } from "./engines/http-server/index.ts";
import { ClientAddress } from "./engines/ip-address/index.ts";
import type { FallbackArea } from "./http/area.ts";
import {
  buildOpenApi,
  createHealth,
  createManagement,
  createOperations,
  type Front,
  openFront,
} from "./http/index.ts";
import { openAudit } from "./service/audit.ts";
import { type Areas, createAreas } from "./service/areas.ts";
import { closeAll, type Closer } from "./service/close-all.ts";
import { runningBackup } from "./service/backup/running-backup.ts";
import { clusterRoutes } from "./service/cluster-routes.ts";
import { registerClusterMetrics } from "./service/cluster-metrics.ts";
import { LocalServer } from "./service/own-server.ts";
import { exposureWarnings, isLocalRequest, requireOperator } from "./service/exposure.ts";
import { type Identity, openIdentity } from "./service/identity.ts";
import { commandLine, firstCommandsOf } from "./service/first-commands.ts";
import { trafficOrigin, trafficOriginFor } from "./service/traffic-origin.ts";
import { openMasterKeys } from "./service/master-keys.ts";
import { openTls, runningServer, type Tls } from "./service/tls.ts";
import { openStorage, type Storage, withWebhookSecret } from "./service/storage.ts";
import type { Service } from "./service/service.ts";
import type { Logger } from "./telemetry/logger.ts";
import { LazyTracing } from "./telemetry/lazy-tracing.ts";
import { readOtelSettings } from "./telemetry/otel-settings.ts";
import { createHttpMetrics, createRegistry } from "./telemetry/metrics.ts";
import { StorageHealth } from "./telemetry/storage-health.ts";
import type { UncaughtErrors } from "./telemetry/uncaught-errors.ts";
import { VERSION } from "./version.ts";
import type { WorkerArea } from "./worker/index.ts";

export type { Service };

export interface ServiceOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** For a program that runs the service in its own process: agents in addition to those of the configuration, and the areas once they serve. */
  readonly embedding?: {
    readonly agents: readonly AgentClass[];
    readonly onStart: (areas: Areas) => void;
  };
  /** A monotonic clock. Default: `clock`, otherwise the clock of the process. */
  readonly steadyClock?: Clock;
  /**
   * Generates a secret for generic webhooks if the environment has none and the database is SQLite. Default: generic webhooks are refused without
   * a secret.
   */
  readonly makesWebhookSecret?: boolean;
  /** Included in the metrics. Only `serve` provides it, because it applies to the whole process. */
  readonly uncaughtErrors?: UncaughtErrors;
  /** Must end the process: the durability of writes is unknown. */
  readonly onFatal: (error: Error) => void;
}

/** Default of `listener.lameDuckMs` in a cluster: load balancers check their servers every one to five seconds. */
const LAME_DUCK_MS = 5000;
/** How long a node hands over its instances: longer than the longest turn is waited for. */
const MAX_RETIRE_MS = 10_000;
/** Wrong tokens per address and minute before the response is 429. High, because clients with a revoked token repeat it. */
const MAX_WRONG_TOKENS = 300;
/** The same limit for logins of the dashboard, which people enter. */
const MAX_WRONG_LOGINS = 20;

export async function startService(options: ServiceOptions): Promise<Service> {
  const closers: Closer[] = [];
  try {
    return await new Start(options, closers).run();
  } catch (error) {
    // The operator needs the error of the start; errors of closing are only logged.
    await closeAll(closers, null).catch((err: unknown) =>
      options.logger.error({ err }, "cannot close all parts after a failed start"),
    );
    throw error;
  }
}

/** The steps of a start. The listeners open last, but earlier parts use their addresses; therefore `#front` is a field. */
class Start {
  readonly #options: ServiceOptions;
  readonly #closers: Closer[];
  readonly #clock: Clock;
  readonly #steadyClock: Clock;
  readonly #registry = createRegistry();
  readonly #clientAddress: ClientAddress;
  readonly #tls: Tls;
  #config: Config;
  #areas: Areas | undefined;
  #front: Front | undefined;
  #isStopping = false;

  constructor(options: ServiceOptions, closers: Closer[]) {
    this.#options = options;
    this.#config = options.config;
    this.#closers = closers;
    this.#clock = options.clock ?? systemClock;
    this.#steadyClock = options.steadyClock ?? options.clock ?? steadyClock;
    this.#clientAddress = new ClientAddress(this.#config.file.listener.trustedProxies);
    this.#tls = openTls(this.#config, options.logger, () => this.#clock.now(), closers);
  }

  async run(): Promise<Service> {
    const { logger } = this.#options;
    checkWorkerAccess(this.#config.file.agents);
    checkCluster(this.#config);
    const plain = await openStorage(this.#options, this.#clock, this.#closers);
    const audit = openAudit(this.#config, plain.database, this.#clock, logger);
    const storage = { ...plain, database: audit.database };
    // After the database was opened: a process that is refused because another one owns the database must not create files.
    if (this.#options.makesWebhookSecret === true) {
      this.#config = withWebhookSecret(this.#config, storage.dataFolder);
    }
    const resourceEvents = new ResourceEvents();
    const identity = await this.#openIdentity(storage, resourceEvents);
    const tracing = new LazyTracing({
      settings: readOtelSettings(this.#config.environment),
      logger,
      registry: this.#registry,
    });
    await tracing.start();
    this.#closers.push({ close: () => tracing.close(), canStall: false });
    const server = new LocalServer(identity.rootToken);
    const areas = this.#createAreas(storage, identity, resourceEvents, audit, plain, server, tracing);
    this.#areas = areas;
    const dashboard = this.#createDashboard(identity, audit);
    // Its classes must be known before the agents' area wakes objects.
    const worker = await this.#createWorker(areas, identity, server);
    const all = [audit, ...areas.all, ...(worker === null ? [] : [worker.module]), dashboard];
    for (const area of all) {
      await area.start?.();
      this.#closers.push({ close: () => area.stop?.(), canStall: area.waitsForInstances === true });
    }
    const front = await this.#openFront(
      storage,
      identity,
      areas,
      dashboard,
      server,
      worker?.fallback ?? null,
      audit,
    );
    this.#front = front;
    storage.cluster?.start();
    server.listensOn(trafficOrigin(front, this.#config));
    const { url, adminUrl } = front;
    const announce = () => storage.dataFolder.announce(runningServer(front, this.#tls));
    this.#tls.start(announce);
    announce();
    const { webhookSecretFile, environment } = this.#config;
    // `dev` restarts the service at every change.
    if (webhookSecretFile !== undefined && environment["SIGNALBOX_RESTARTED"] === undefined) {
      logger.info(
        { file: webhookSecretFile },
        "WEBHOOK_SECRET is not set: generic webhooks are verified with the secret in this file",
      );
    }
    const warnings = front.isExposed ? exposureWarnings(this.#config, areas.gateway) : [];
    for (const warning of warnings) logger.warn(warning);
    this.#options.embedding?.onStart(areas);
    let stopped: Promise<void> | undefined;
    return {
      url,
      adminUrl,
      warnings,
      rootToken: identity.rootToken,
      firstCommands: firstCommandsOf(
        areas.all,
        trafficOrigin(front, this.#config),
        commandLine(this.#config, true),
      ),
      createLoginLink: async () => adminUrl + loginPath((await identity.sessions.createLoginCode()).code),
      reloadCertificate: () => this.#tls.reload(),
      stop: (isUrgent = false) => (stopped ??= this.#stop(front, all, storage, isUrgent)),
    };
  }

  #openIdentity(storage: Storage, resourceEvents: ResourceEvents): Promise<Identity> {
    const options = {
      config: this.#config,
      logger: this.#options.logger,
      clock: this.#clock,
      resourceEvents,
      gatewayExists: (accountId: string, gatewayId: string) =>
        this.#areas?.gateway.exists(accountId, gatewayId) === true,
      acceptsSessions: (request: HttpRequest) =>
        this.#config.admin === null || request.socket.localPort === this.#front?.adminPort,
    };
    return openIdentity(storage, options, this.#closers);
  }

  #createAreas(
    storage: Storage,
    identity: Identity,
    resourceEvents: ResourceEvents,
    audit: AuditArea,
    plain: Storage,
    server: LocalServer,
    tracing: LazyTracing,
  ): Areas {
    const { logger, onFatal } = this.#options;
    this.#options.uncaughtErrors?.register(this.#registry);
    return createAreas({
      ...storage,
      ...identity,
      plainDatabase: plain.database,
      audit: audit.trail,
      server,
      config: this.#config,
      logger,
      clock: this.#clock,
      steadyClock: this.#steadyClock,
      sealing: openSealing(this.#config.encryptionKeys, storage.dataFolder.file("encryption-key")),
      masterKeys: openMasterKeys(this.#config, storage, logger),
      resourceEvents,
      registry: this.#registry,
      tracing,
      ownAgents: this.#options.embedding?.agents ?? [],
      onFatal,
    });
  }

  /** Loaded on demand: most installations have no worker. */
  async #createWorker(
    { agents }: Areas,
    { authenticator }: Identity,
    server: LocalServer,
  ): Promise<WorkerArea | null> {
    if (this.#config.file.agents.worker === undefined) return null;
    const { createWorkerArea } = await import("./worker/index.ts");
    const serveObjects = await agents.connectObjects();
    const worker = await createWorkerArea({
      objects: agents.objects,
      joinClient: agents.joinClient,
      variables: agents.variables,
      hasAgent: (agent) => agents.door.hasAgent(agent),
      config: this.#config,
      logger: this.#options.logger,
      clock: this.#clock,
      authenticator,
      server,
    });
    serveObjects();
    return worker;
  }

  #createDashboard(identity: Identity, audit: AuditArea): AreaModule {
    return createDashboardArea({
      ...identity,
      audit: audit.trail,
      version: VERSION,
      failures: new FailureThrottle(MAX_WRONG_LOGINS, () => this.#steadyClock.now()),
      clientAddress: (request) => this.#clientAddress.ofRequest(request),
      trafficUrl: () =>
        this.#front === undefined || this.#front.url === this.#front.adminUrl ? null : this.#front.url,
      firstCommands: (request, isRoot) =>
        firstCommandsOf(
          this.#areas?.all ?? [],
          trafficOriginFor(request, this.#front, this.#config),
          commandLine(this.#config, isRoot),
        ),
    });
  }

  #openFront(
    storage: Storage,
    { accounts, tokens, authenticator }: Identity,
    { all, gateway, webhooks, agents }: Areas,
    dashboard: AreaModule,
    server: LocalServer,
    fallback: FallbackArea | null,
    audit: AuditArea,
  ): Promise<Front> {
    const config = this.#config;
    const { listener } = config.file;
    const { lease } = storage;
    const routes = [
      ...accountRoutes(accounts),
      ...tokenRoutes(tokens, (accountId) =>
        gateway.withoutAuthentication().flatMap((one) => (one.accountId === accountId ? one.gatewayId : [])),
      ),
      ...[audit, ...all, dashboard].flatMap((area) => area.routes),
    ];
    const health = new StorageHealth(this.#registry, {
      database: storage.database,
      "call log": storage.callLog,
      agents: storage.instanceStore,
    });
    const { cluster, node } = storage;
    const problems = () => {
      if (this.#isStopping) return ["stopping"];
      const problems = health.problems();
      // The database may answer again while the settings are still being read: other nodes know more.
      const isBehind = problems.length === 0 && lease?.isFresh === false;
      return isBehind ? ["the settings in memory may be out of date"] : problems;
    };
    const { agentsReport } = storage;
    routes.push(
      ...clusterRoutes({ config, cluster, node, agentsReport, problems, isStopping: () => this.#isStopping }),
    );
    routes.push(...runningBackup(config, storage, all, this.#options.logger));
    if (node !== null) registerClusterMetrics(this.#registry, node, cluster);
    agentsReport?.start(this.#registry);
    if (cluster !== null) this.#registry.setDefaultLabels({ node: config.nodeName });
    const wrongTokens = new FailureThrottle(MAX_WRONG_TOKENS, () => this.#steadyClock.now());
    const management = createManagement({
      routes,
      authenticator,
      accounts,
      audit: audit.trail,
      onWrongCredential: (request) => wrongTokens.record(this.#clientAddress.ofRequest(request)),
      trafficOrigin: (request) => trafficOriginFor(request, this.#front, config),
      maxBodyBytes: listener.maxBodyBytes,
    });
    server.open([...gateway.mounts, management]);
    return openFront({
      fallback,
      traffic: [...gateway.mounts, ...webhooks.mounts],
      shared: agents.mounts,
      health: createHealth(problems),
      administration: [
        createOperations({
          registry: this.#registry,
          problems,
          openApi: () => buildOpenApi(routes, VERSION),
          authorise: (request, what) => {
            if (what === "metrics" && config.isMetricsPublic) return;
            if (this.#front?.isAdminExposed === false && isLocalRequest(request, this.#clientAddress)) return;
            requireOperator(authenticator.fromRequest(request), what);
          },
        }),
        management,
        ...dashboard.mounts,
      ],
      address: { host: config.host, port: config.port },
      adminAddress: config.admin,
      admit: node === null ? null : () => node.admit(lease),
      limits: listener,
      certificate: this.#tls.certificate,
      metrics: createHttpMetrics(this.#registry),
      logger: this.#options.logger,
    });
  }

  async #stop(
    front: Front,
    areas: readonly AreaModule[],
    { instanceStore, node }: Storage,
    isUrgent: boolean,
  ): Promise<void> {
    this.#isStopping = true;
    // A node that cannot announce it is declared dead by the others.
    node?.session?.drain().catch(() => undefined);
    const { lameDuckMs = this.#config.cluster === null ? 0 : LAME_DUCK_MS } = this.#config.file.listener;
    if (!isUrgent) {
      if (lameDuckMs > 0) front.retire();
      const signal = awakeSignal(Math.max(lameDuckMs, MAX_RETIRE_MS));
      const retired = areas.map((area) => area.retire?.(signal) ?? Promise.resolve());
      await Promise.all([awakeTime(lameDuckMs), ...retired]);
    }
    front.drain();
    await Promise.all(areas.map(async (area) => area.drain?.()));
    await front.close(this.#config.file.listener.gracePeriodMs);
    node?.hurry();
    await closeAll(this.#closers, instanceStore);
  }
}

/**
 * The composition root: builds the service, and defines the order of start and stop.
 *
 * Start: (`dev` only: modules of agents, and the predecessor ends →) storage → accounts and tokens → areas → listeners.
 * Stop:  not ready, still serving (`listener.lameDuckMs`; new connections only if no other process of this machine takes them; and until other nodes have this one's instances) → listeners drain → areas drain → running requests end or the grace period passes → areas stop → storage closes.
 */
import type { Registry } from "prom-client";
import { FailureThrottle, openSealing } from "./accounts/index.ts";
import { accountRoutes, tokenRoutes } from "./accounts-api/index.ts";
import type { AgentClass } from "./agents/index.ts";
import type { AreaModule } from "./area-module.ts";
import type { AuditArea } from "./audit/index.ts";
import { checkCluster, checkWorkerAccess, type Config } from "./config/index.ts";
import { ResourceEvents } from "./contracts/resource-events.ts";
import { awakeSignal, awakeTime } from "./core/awake-time.ts";
import { type Clock, steadyClock, systemClock } from "./core/clock.ts";
import { SharedPlaces } from "./core/shared-pool.ts";
import { createDashboardArea, loginPath } from "./dashboard/index.ts";
import type { RunningServer } from "./database/sqlite/data-folder.ts";
import { ClientAddress } from "./engines/ip-address/index.ts";
import {
  type AdmitRequest,
  buildOpenApi,
  createHealth,
  createManagement,
  createOperations,
  type Front,
  openFront,
  type Siblings,
} from "./http/index.ts";
import { openAudit } from "./service/audit.ts";
import { type Areas, createAreas, tryModules } from "./service/areas.ts";
import { closeAll, type Closer } from "./service/close-all.ts";
import { runningBackup } from "./service/backup/running-backup.ts";
import { clusterRoutes } from "./service/cluster-routes.ts";
import { registerClusterMetrics } from "./service/cluster-metrics.ts";
import { LocalServer } from "./service/own-server.ts";
import { exposureWarnings, isLocalRequest, requireOperator } from "./service/exposure.ts";
import { type Identity, openIdentity } from "./service/identity.ts";
import { commandLine, firstCommandsOf } from "./service/first-commands.ts";
import { openMasterKeys } from "./service/master-keys.ts";
import { Running } from "./service/running.ts";
import { openTls, runningServer, type Tls } from "./service/tls.ts";
import { openStorage, type Storage, withWebhookSecret } from "./service/storage.ts";
import { clusterOf, networkOf, nodeOf, type Topology } from "./service/topology.ts";
import type { Service, StopManner } from "./service/service.ts";
import type { Logger } from "./telemetry/logger.ts";
import { LazyTracing } from "./telemetry/lazy-tracing.ts";
import { readOtelSettings } from "./telemetry/otel-settings.ts";
import { createHttpMetrics, createRegistry } from "./telemetry/metrics.ts";
import { StorageHealth } from "./telemetry/storage-health.ts";
import type { UncaughtErrors } from "./telemetry/uncaught-errors.ts";
import { VERSION } from "./version.ts";
import type { WorkerArea } from "./worker/index.ts";

export type { Service, StopManner };

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
  /** Other processes of this machine that serve at the same addresses. Absent: this process serves alone. */
  readonly processes?: ProcessGroup;
  /** Included in the metrics. Only `serve` provides it, because it applies to the whole process. */
  readonly uncaughtErrors?: UncaughtErrors;
  /**
   * Called when the configuration is valid and the modules of agents are loaded. The start goes on, and opens the data folder and the listeners, when the
   * promise resolves: until then another process may use them.
   */
  readonly whenLoaded?: () => Promise<void>;
  /** Must end the process: the durability of writes is unknown. */
  readonly onFatal: (error: Error) => void;
}

/** Processes that serve together, as one of them sees them. */
export interface ProcessGroup extends Siblings {
  /** The number of this process, from 1. */
  readonly number: number;
  /** This process listens, or its certificate has changed. */
  announce(server: RunningServer): void;
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
    return await start(options, closers);
  } catch (error) {
    // The operator needs the error of the start; errors of closing are only logged.
    await closeAll(closers, null).catch((err: unknown) =>
      options.logger.error({ err }, "cannot close all parts after a failed start"),
    );
    throw error;
  }
}

/** What every step uses. */
interface Base {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Monotonic. */
  readonly steadyClock: Clock;
  readonly registry: Registry;
  readonly storage: Storage;
  readonly audit: AuditArea;
  readonly running: Running;
  readonly clientAddress: ClientAddress;
  readonly places: SharedPlaces;
}

/** The steps of a start, in order. Each uses those before it; what it needs of later ones it finds in `running`. */
async function start(options: ServiceOptions, closers: Closer[]): Promise<Service> {
  const { logger, clock = systemClock } = options;
  const tls = openTls(options.config, logger, () => clock.now(), closers);
  checkWorkerAccess(options.config.file.agents);
  checkCluster(options.config);
  if (options.whenLoaded !== undefined) {
    await tryModules(options.config, options.embedding?.agents ?? []);
    await options.whenLoaded();
  }
  const storage = await openStorage(options, clock, closers);
  // After the database was opened: a process that is refused because another one owns the database must not create files.
  const config =
    options.makesWebhookSecret === true
      ? withWebhookSecret(options.config, storage.dataFolder)
      : options.config;
  const base: Base = {
    config,
    logger,
    clock,
    steadyClock: options.steadyClock ?? options.clock ?? steadyClock,
    registry: createRegistry(),
    storage,
    audit: openAudit(config, storage.databases.audit, clock, logger),
    running: new Running(config),
    clientAddress: new ClientAddress(config.file.listener.trustedProxies),
    places: new SharedPlaces(config.file.listener.maxConnections),
  };
  options.uncaughtErrors?.register(base.registry);
  const resourceEvents = new ResourceEvents();
  const identity = await openIdentity(storage, { ...base, resourceEvents }, closers);
  const tracing = await startTracing(base, closers);
  const server = new LocalServer(identity.rootToken, base.running);
  const areas = createAreas({
    ...base,
    ...storage,
    ...identity,
    audit: base.audit.trail,
    server,
    tracing,
    resourceEvents,
    sealing: openSealing(config.encryptionKeys, storage.dataFolder.file("encryption-key")),
    masterKeys: openMasterKeys(config, storage, logger),
    ownAgents: options.embedding?.agents ?? [],
    onFatal: options.onFatal,
  });
  base.running.created(areas);
  const dashboard = createDashboard(base, identity);
  // Its classes must be known before the agents' area wakes objects.
  const worker = await createWorker(base, areas, identity, server);
  const all = [base.audit, ...areas.all, ...(worker === null ? [] : [worker.module]), dashboard];
  for (const area of all) {
    await area.start?.();
    closers.push({ close: () => area.stop?.(), canStall: area.waitsForInstances === true });
  }
  const processes = options.processes ?? null;
  const front = await openListeners(base, { identity, areas, dashboard, worker, server, tls, processes });
  base.running.listens(front);
  networkOf(storage.topology)?.start();
  const announce = () => {
    const server = runningServer(front, tls);
    storage.dataFolder.announce(server);
    options.processes?.announce(server);
  };
  tls.start(announce);
  announce();
  try {
    await Promise.all(all.map(async (area) => area.begin?.()));
  } catch (error) {
    front.drain();
    await front.close(0);
    throw error;
  }
  const warnings = warnOperator(base, front, areas);
  options.embedding?.onStart(areas);
  let stopped: Promise<void> | undefined;
  return {
    url: front.url,
    adminUrl: front.adminUrl,
    warnings,
    rootToken: identity.rootToken,
    firstCommands: firstCommandsOf(areas.all, base.running.trafficOrigin, commandLine(config, true)),
    createLoginLink: async () => front.adminUrl + loginPath((await identity.sessions.createLoginCode()).code),
    reloadCertificate: () => tls.reload(),
    stop: (manner = "in order") => (stopped ??= stop(base, front, all, closers, manner)),
  };
}

async function startTracing({ config, logger, registry }: Base, closers: Closer[]): Promise<LazyTracing> {
  const tracing = new LazyTracing({ settings: readOtelSettings(config.environment), logger, registry });
  await tracing.start();
  closers.push({ close: () => tracing.close(), canStall: false });
  return tracing;
}

/** Loaded on demand: most installations have no worker. */
async function createWorker(
  { config, logger, clock, places }: Base,
  { agents }: Areas,
  { authenticator }: Identity,
  server: LocalServer,
): Promise<WorkerArea | null> {
  if (config.file.agents.worker === undefined) return null;
  const { createWorkerArea } = await import("./worker/index.ts");
  const worker = await createWorkerArea({
    objects: agents.objects,
    joinClient: agents.joinClient,
    variables: agents.variables,
    hasAgent: (agent) => agents.deliveries.hasAgent(agent),
    config,
    logger,
    clock,
    authenticator,
    places,
    server,
  });
  agents.serveObjects();
  return worker;
}

function createDashboard(base: Base, identity: Identity): AreaModule {
  const { audit, running, config, steadyClock, clientAddress } = base;
  return createDashboardArea({
    ...identity,
    audit: audit.trail,
    version: VERSION,
    failures: new FailureThrottle(MAX_WRONG_LOGINS, () => steadyClock.now()),
    clientAddress: (request) => clientAddress.ofRequest(request),
    trafficUrl: () => running.separateTrafficUrl,
    firstCommands: (request, isRoot) =>
      firstCommandsOf(running.areas, running.trafficOriginFor(request), commandLine(config, isRoot)),
  });
}

interface FrontParts {
  readonly identity: Identity;
  readonly areas: Areas;
  readonly dashboard: AreaModule;
  readonly worker: WorkerArea | null;
  readonly server: LocalServer;
  readonly tls: Tls;
  readonly processes: ProcessGroup | null;
}

function openListeners(base: Base, parts: FrontParts): Promise<Front> {
  const { config, logger, registry, storage, audit, running, clientAddress, steadyClock } = base;
  const { identity, areas, dashboard, worker, server, tls, processes } = parts;
  const { accounts, tokens, authenticator } = identity;
  const { gateway, webhooks, agents } = areas;
  const { topology } = storage;
  const problems = readProblems(base);
  registerClusterMetrics(registry, topology);
  if (topology.kind === "cluster")
    registry.setDefaultLabels({
      node: config.nodeName,
      ...(processes === null ? {} : { process: String(processes.number) }),
    });
  const routes = [
    ...accountRoutes(accounts),
    ...tokenRoutes(tokens, (accountId) =>
      gateway.withoutAuthentication().flatMap((one) => (one.accountId === accountId ? one.gatewayId : [])),
    ),
    ...[audit, ...areas.all, dashboard].flatMap((area) => area.routes),
    ...clusterRoutes({ config, topology, problems, isStopping: () => running.isStopping }),
    ...runningBackup(config, storage, areas.all, logger),
  ];
  const wrongTokens = new FailureThrottle(MAX_WRONG_TOKENS, () => steadyClock.now());
  const management = createManagement({
    routes,
    authenticator,
    accounts,
    places: base.places,
    audit: audit.trail,
    onWrongCredential: (request) => wrongTokens.record(clientAddress.ofRequest(request)),
    trafficOrigin: (request) => running.trafficOriginFor(request),
    maxBodyBytes: config.file.listener.maxBodyBytes,
  });
  server.open([...gateway.mounts, management]);
  const operations = createOperations({
    registry,
    problems,
    siblings: processes,
    openApi: () => buildOpenApi(routes, VERSION),
    authorise: (request, what) => {
      if (what === "metrics" && config.isMetricsPublic) return;
      if (!running.isAdminExposed && isLocalRequest(request, clientAddress)) return;
      requireOperator(authenticator.fromRequest(request), what);
    },
  });
  return openFront({
    fallback: worker?.fallback ?? null,
    placeAtHost: gateway.placeAtHost,
    traffic: [...gateway.mounts, ...webhooks.mounts],
    shared: agents.mounts,
    health: createHealth(problems, processes),
    administration: [operations, management, ...dashboard.mounts],
    address: { host: config.host, port: config.port },
    adminAddress: config.admin,
    admit: admissionOf(topology),
    engine: config.file.listener.engine,
    limits: config.file.listener,
    certificate: tls.certificate,
    metrics: createHttpMetrics(registry),
    logger,
  });
}

/** Why this process should get no requests at present. */
function readProblems({ registry, storage, running }: Base): () => readonly string[] {
  const { databases, callLog, topology } = storage;
  const health = new StorageHealth(registry, {
    database: databases.settings,
    "call log": callLog,
    agents: topology.instances,
  });
  const lease = clusterOf(topology)?.lease;
  return () => {
    if (running.isStopping) return ["stopping"];
    const problems = health.problems();
    // The database may answer again while the settings are still being read: other nodes know more.
    const isBehind = problems.length === 0 && lease?.isFresh === false;
    return isBehind ? ["the settings in memory may be out of date"] : problems;
  };
}

/** Null with SQLite: every request may be handled. */
function admissionOf(topology: Topology): AdmitRequest | null {
  if (topology.kind === "single") return null;
  const { node } = topology;
  const lease = clusterOf(topology)?.lease ?? null;
  return () => node.admit(lease);
}

/** Returns the warnings that are shown at the start. */
function warnOperator({ config, logger }: Base, front: Front, { gateway }: Areas): string[] {
  const { webhookSecretFile, environment } = config;
  // `dev` restarts the service at every change.
  if (webhookSecretFile !== undefined && environment["SIGNALBOX_RESTARTED"] === undefined) {
    logger.info(
      { file: webhookSecretFile },
      "WEBHOOK_SECRET is not set: generic webhooks are verified with the secret in this file",
    );
  }
  const warnings = front.isExposed ? exposureWarnings(config, gateway) : [];
  for (const warning of warnings) logger.warn(warning);
  return warnings;
}

async function stop(
  { config, storage, running }: Base,
  front: Front,
  areas: readonly AreaModule[],
  closers: readonly Closer[],
  manner: StopManner,
): Promise<void> {
  const { topology } = storage;
  const { listener } = config.file;
  const node = nodeOf(topology);
  running.isStopping = true;
  // A node that cannot announce it is declared dead by the others.
  node?.session.drain().catch(() => undefined);
  const { lameDuckMs = topology.kind === "cluster" ? LAME_DUCK_MS : 0 } = listener;
  if (manner !== "urgently") {
    const isReplaced = manner === "replaced";
    if (lameDuckMs > 0 || isReplaced) front.retire(!isReplaced);
    const askedMs = Math.max(...areas.map((area) => area.retireMs?.() ?? 0));
    const signal = awakeSignal(Math.max(lameDuckMs, askedMs + MAX_RETIRE_MS));
    const retired = areas.map((area) => area.retire?.(signal) ?? Promise.resolve());
    await Promise.all([awakeTime(lameDuckMs), ...retired]);
  }
  front.drain();
  await Promise.all(areas.map(async (area) => area.drain?.()));
  await front.close(listener.gracePeriodMs);
  node?.hurry();
  await closeAll(closers, topology.instances);
}

/** Composes the agents' area: the instances that run here, the ways to instances of all nodes, the doors, and the order of start and stop. */
import type { Duplex } from "node:stream";
import { kebabCase } from "@signalbox/protocol";
import type { Registry } from "prom-client";
import type { WebSocket } from "ws";
import type { Accounts, Authenticator } from "../accounts/index.ts";
import type { AreaModule } from "../area-module.ts";
import { type Config, ConfigError } from "../config/index.ts";
import type { Clock } from "../core/clock.ts";
import { DEFAULT_ACCOUNT } from "../core/default-account.ts";
import type { Repetition } from "../core/repeat.ts";
import type { SharedPlaces } from "../core/shared-pool.ts";
import { TokenBucket } from "../core/token-bucket.ts";
import { watchClock } from "../core/watch-clock.ts";
import type { OutgoingSender } from "../outgoing/index.ts";
import type { AlertFeedSlot } from "../contracts/alert-feed.ts";
import type { LazyTracing } from "../telemetry/lazy-tracing.ts";
import type { Database } from "../database/database.ts";
import type { Area } from "../http/area.ts";
import type { InstanceStore } from "../engines/instance-store/index.ts";
import { databaseName } from "./instance/instance-ref.ts";
import type { OwnServer } from "../contracts/own-server.ts";
import type { ResourceEvents } from "../contracts/resource-events.ts";
import type { TagFeed } from "../contracts/tag-feed.ts";
import type { TagLookup } from "../contracts/tag-lookup.ts";
import type { Logger } from "../telemetry/logger.ts";
import { AccountEnvironments } from "./instance/account-environments.ts";
import { ActivityHub } from "./instance/activity.ts";
import { ActivityStreams } from "./management/activity-stream.ts";
import type { AgentClass } from "./api/agent.ts";
import type { AgentSql } from "./api/agent-context.ts";
import { ChangeCounters } from "./objects/change-counters.ts";
import { SqlStorage } from "./objects/sql-storage.ts";
import { createCors } from "./doors/cors.ts";
import { createAgentMetrics, registerAgentGauges } from "./agent-metrics.ts";
import type { AgentDeliveries } from "../contracts/agent-deliveries.ts";
import { AgentCalls } from "./doors/agent-calls.ts";
import { withObjects } from "./doors/object-deliveries.ts";
import { Departures } from "./doors/departures.ts";
import { createAgentDeliveries } from "./doors/agent-deliveries.ts";
import { Directory } from "./instance/directory.ts";
import { type DoorOptions, handleHttp } from "./doors/http-door.ts";
import { LocalRequests } from "./doors/instance-requests.ts";
import { type CatalogNode, InstanceCatalog } from "./instance/instance-catalog.ts";
import { InstanceClasses } from "./instance/instance-classes.ts";
import { InstancePages } from "./instance/instance-pages.ts";
import { ProblemIndex } from "./instance/problem-index.ts";
import { AgentPulses } from "./instance/agent-pulse.ts";
import { Timeline } from "./instance/timeline.ts";
import type { InstanceEnvironment } from "./instance/instance-environment.ts";
import { loadAgents } from "./modules/load-agent-modules.ts";
import { agentRoutes } from "./management/routes.ts";
import { joinClient } from "./objects/client-socket.ts";
import { ObjectHost } from "./objects/object-host.ts";
import { ObjectPasts } from "./objects/object-past.ts";
import { LocalReach } from "./local-reach.ts";
import type { AgentsCluster, Here, Reach } from "./reach.ts";
import { SocketHub } from "./connections/socket-hub.ts";
import { TagSubscriptions } from "./doors/tag-subscriptions.ts";
import { WebSocketDoor } from "./doors/websocket-door.ts";

export interface AgentsParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly steadyClock: Clock;
  readonly database: Database;
  readonly instanceStore: InstanceStore;
  /** Null for a process that is alone. */
  readonly cluster: AgentsCluster | null;
  readonly authenticator: Authenticator;
  /** Of requests and WebSockets, by account. */
  readonly places: SharedPlaces;
  readonly accounts: Pick<Accounts, "find">;
  readonly resourceEvents: ResourceEvents;
  readonly registry: Registry;
  readonly outgoing: OutgoingSender;
  readonly server: Pick<OwnServer, "url">;
  readonly tracing: Pick<LazyTracing, "turns">;
  readonly alertFeed: AlertFeedSlot;
  /** Agents that are part of the service. */
  readonly builtInAgents: readonly AgentClass[];
  /** Agents of a program that runs the service in its own process, in addition to those of the configured modules. */
  readonly ownAgents: readonly AgentClass[];
  readonly tags?: TagLookup | undefined;
  readonly tagFeed: TagFeed;
  /** Variables of the process that agents may see. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

export interface AgentsArea extends AreaModule {
  readonly deliveries: AgentDeliveries;
  /** No instance has work in progress. */
  readonly isQuiet: boolean;
  /** The objects of the worker mode. */
  readonly objects: ObjectHost;
  /** The classes of the worker are registered: from now on this node answers calls of others to its objects. */
  serveObjects(): void;
  /** Joins a WebSocket of an object's response to the client's socket. */
  joinClient(end: object, webSocket: WebSocket, socket: Duplex): void;
  readonly variables: AgentsParts["variables"];
}

/** What runs here, and what its parts share. */
interface Instances extends Here {
  readonly environment: InstanceEnvironment;
  readonly problems: ProblemIndex;
  readonly timeline: Timeline | null;
  readonly creationRate: TokenBucket | null;
}

export function createAgentsArea(parts: AgentsParts): AgentsArea {
  // Instances call others wherever these run, and every way to an instance ends at one that runs here: the only reference forward.
  const here = createInstances(parts, () => reach);
  const reach: Reach =
    parts.cluster === null
      ? new LocalReach(here)
      : parts.cluster.openReach({ ...parts, ...parts.cluster, ...here });
  const streams = new ActivityStreams(here.environment.activity);
  const deliveries =
    parts.config.file.agents.worker === undefined
      ? reach.webhooks
      : withObjects(reach.webhooks, here.objects);
  const tagSubscriptions = new TagSubscriptions({
    ...parts,
    deliveries,
    placement: reach.placement,
    feed: parts.tagFeed,
    subscriptions: parts.config.file.agents.tagChanges,
  });
  return {
    mounts: [createMount(parts, here, reach)],
    routes: agentRoutes({
      ...here,
      definitions: here.classes.agents,
      streams,
      store: parts.instanceStore,
      tags: parts.tags,
      reach: reach.management,
      nodes: reach.nodes,
      pages: new InstancePages(parts.database),
    }),
    deliveries,
    get isQuiet() {
      return here.directory.isQuiet;
    },
    objects: here.objects,
    serveObjects: () => reach.serveObjects(),
    joinClient: (end, webSocket, socket) => joinClient(here.hub, end, webSocket, socket),
    variables: parts.variables,
    ...createLife(parts, { here, reach, streams, tagSubscriptions }),
  };
}

function createInstances(parts: AgentsParts, reach: () => Reach): Instances {
  const { clock, logger, database, cluster } = parts;
  const settings = parts.config.file.agents;
  const classes = new InstanceClasses();
  const hub = new SocketHub(settings);
  const catalog = new InstanceCatalog(
    database,
    (err) => logger.warn({ err }, "due and activity times of instances could not be written; retrying"),
    cluster === null ? null : catalogNode(cluster),
  );
  const problems = new ProblemIndex({
    database,
    registered: () => catalog.flush(),
    isOwn: (ref) => cluster === null || cluster.ownership.isHeld(databaseName(ref)),
    onFailure: (err) => logger.warn({ err }, "problems of instances could not be written; retrying"),
  });
  const timeline = settings.timeline
    ? new Timeline({
        database,
        clock,
        onFailure: (err) =>
          logger.warn({ err }, "records of the timelines of instances could not be written"),
      })
    : null;
  const pulses = new AgentPulses();
  const metrics = createAgentMetrics(parts.registry);
  const callAgent: InstanceEnvironment["callAgent"] = (target, call) => reach().callAgent(target, call);
  const environments = new AccountEnvironments(parts.variables, classes.agents, callAgent, parts.server);
  const environment: InstanceEnvironment = {
    store: parts.instanceStore,
    ownership: cluster?.ownership ?? null,
    catalog,
    problems,
    timeline,
    pulses,
    hub,
    activity: new ActivityHub(),
    metrics,
    clock,
    logger,
    limits: settings,
    outgoing: parts.outgoing,
    spans: parts.tracing.turns,
    alertFeed: parts.alertFeed,
    variables: parts.variables,
    openSql: (instanceParts) =>
      new SqlStorage({
        ...instanceParts,
        counters: new ChangeCounters(instanceParts.database, "connection"),
      }) as AgentSql,
    envOf: (account) => environments.of(account),
    nameOf: (agent) => nameOf(classes, agent),
    callAgent,
  };
  const directory = new Directory({
    environment,
    limits: settings,
    classes,
    beforeDestroy: (ref) => objects.removePast(ref),
    onDestroy: ({ account, agent, name }) =>
      parts.resourceEvents.deleted({ accountId: account, type: "agent", id: `${agent}/${name}` }),
  });
  registerAgentGauges(parts.registry, directory, hub);
  const objects = new ObjectHost({
    directory,
    clock,
    logger,
    classes,
    account: DEFAULT_ACCOUNT,
    builtInNames: new Set(parts.builtInAgents.map(({ name }) => kebabCase(name))),
    reach: () => reach().objects,
    pasts: new ObjectPasts({ ...environment, historyDays: settings.worker?.historyDays ?? 0 }),
  });
  const { newInstancesPerMinute } = settings;
  const creationRate = newInstancesPerMinute === null ? null : new TokenBucket(newInstancesPerMinute, 60_000);
  return {
    environment,
    classes,
    directory,
    catalog,
    problems,
    timeline,
    pulses,
    hub,
    objects,
    creationRate,
    departures: new Departures({ directory, logger, lost: metrics.lostCloses }),
    calls: new AgentCalls(classes.agents, directory, parts.tracing.turns),
    requests: new LocalRequests({ directory, creationRate, environment }),
    webhooks: createAgentDeliveries(classes.agents, directory),
    now: () => clock.now(),
  };
}

/** The name in URLs of an agent that code names by its class, or by a name in any form. */
function nameOf({ agents }: InstanceClasses, agent: AgentClass | string): string {
  if (typeof agent === "string") return kebabCase(agent);
  const known = [...agents.values()].find(({ agentClass }) => agentClass === agent);
  return known?.kebab ?? kebabCase(agent.name);
}

/** HTTP and WebSockets on `/agents`. */
function createMount(
  parts: AgentsParts,
  { classes, directory, hub, creationRate }: Instances,
  { requests, sockets }: Reach,
): Area {
  const settings = parts.config.file.agents;
  const cors = createCors(settings.cors);
  const options: DoorOptions = {
    cors,
    creationRate,
    access: {
      mode: settings.access === "public" ? "public" : "token",
      authorize: settings.authorize,
      authenticator: parts.authenticator,
      accountExists: (id) => parts.accounts.find(id) !== undefined,
    },
    definitions: classes.agents,
    directory,
    requests,
    maxBodyBytes: settings.maxBodyBytes,
    maxMessageBytes: settings.maxMessageBytes,
    places: parts.places,
  };
  const webSockets = new WebSocketDoor(options, hub, sockets, parts.logger);
  return {
    name: "agents",
    segments: ["agents"],
    dialect: "envelope",
    isForeign: true,
    ...(cors === null ? {} : { headersFor: (request) => cors.headersFor(request) }),
    handle: (request, response, context) => handleHttp(options, request, response, context),
    upgrade: (request, socket, head, context) => webSockets.upgrade(request, socket, head, context),
  };
}

interface Running {
  readonly here: Instances;
  readonly reach: Reach;
  readonly streams: ActivityStreams;
  readonly tagSubscriptions: TagSubscriptions;
}

type Life = Pick<
  AreaModule,
  "start" | "begin" | "retire" | "retireMs" | "drain" | "waitsForInstances" | "flush" | "stop"
>;

function createLife(parts: AgentsParts, { here, reach, streams, tagSubscriptions }: Running): Life {
  const { classes, directory, hub, catalog, problems, timeline, departures } = here;
  let clockWatch: Repetition | null = null;
  return {
    async start() {
      await loadClasses(parts, classes);
      hub.start();
      timeline?.start();
      reach.start();
    },
    async begin() {
      directory.start();
      clockWatch = watchClock(
        parts.clock,
        parts.steadyClock,
        () => directory.clockChanged(),
        (err) => parts.logger.error({ err }, "due work was not looked at after the clock was set"),
      );
      tagSubscriptions.start();
    },
    retire: (signal) => reach.retire(signal),
    retireMs: () => here.objects.maxUpdateDelayMs,
    async drain() {
      await reach.retireRest();
      directory.drain();
      hub.closeAll(1012, "the server is restarting");
      // Before their sources.
      reach.drain();
      streams.close();
    },
    waitsForInstances: true,
    flush: () => catalog.flush(),
    async stop() {
      await tagSubscriptions.stop();
      await reach.withdraw();
      departures.stop();
      await clockWatch?.stop();
      await directory.stop();
      await here.objects.settlePasts();
      await reach.close();
      await timeline?.close();
      await problems.close();
      await catalog.close();
    },
  };
}

async function loadClasses(parts: AgentsParts, classes: InstanceClasses): Promise<void> {
  for (const [kebab, definition] of await loadConfigured(parts)) classes.agents.set(kebab, definition);
}

/** Loads the agents. Throws what their modules and their settings throw; can be called before there is an area, to learn just that. */
export async function loadConfigured({
  config,
  builtInAgents,
  ownAgents,
}: Pick<AgentsParts, "config" | "builtInAgents" | "ownAgents">): Promise<
  Awaited<ReturnType<typeof loadAgents>>
> {
  const { modules, tagChanges } = config.file.agents;
  const loaded = await loadAgents({ builtIn: builtInAgents, own: ownAgents }, modules, config.workingFolder);
  const unknown = tagChanges.find(({ agent }) => !loaded.has(agent));
  if (unknown !== undefined) throw new ConfigError(`agents.tagChanges: no agent is named "${unknown.agent}"`);
  return loaded;
}

function catalogNode({ network, ownership }: AgentsCluster): CatalogNode {
  return {
    get self() {
      return network.self;
    },
    epochOf: (ref) => ownership.epochOf(databaseName(ref)),
  };
}

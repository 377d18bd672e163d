/** Composes the agents' area: store, catalog, directory, doors, management, and the door that webhooks use. */
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
import { TokenBucket } from "../core/token-bucket.ts";
import { watchClock } from "../core/watch-clock.ts";
import type { OutgoingSender } from "../outgoing/index.ts";
import type { AlertFeedSlot } from "../contracts/alert-feed.ts";
import type { LazyTracing } from "../telemetry/lazy-tracing.ts";
import type { Database } from "../database/database.ts";
import type { InstanceStore, Ownership } from "../engines/instance-store/index.ts";
import { databaseName } from "./instance/instance-ref.ts";
import type { NodeNetwork } from "../contracts/node-network.ts";
import type { OwnServer } from "../contracts/own-server.ts";
import type { ResourceEvents } from "../contracts/resource-events.ts";
import type { TagFeed } from "../contracts/tag-feed.ts";
import type { TagLookup } from "../contracts/tag-lookup.ts";
import type { Logger } from "../telemetry/logger.ts";
import { AccountEnvironments } from "./instance/account-environments.ts";
import { ActivityHub } from "./instance/activity.ts";
import { ActivityStreams } from "./management/activity-stream.ts";
import type { AgentClass } from "./api/agent.ts";
import type { AgentDefinition } from "./instance/agent-definition.ts";
import type { AgentSql } from "./api/agent-context.ts";
import { SqlStorage } from "./objects/sql-storage.ts";
import { createCors } from "./doors/cors.ts";
import { createAgentMetrics } from "./agent-metrics.ts";
import type { AgentsDoor } from "../contracts/agents-door.ts";
import { AgentCalls } from "./doors/agent-calls.ts";
import { withObjects } from "./doors/object-deliveries.ts";
import { Departures } from "./doors/departures.ts";
import { createWebhookDoor } from "./doors/webhook-door.ts";
import { type Definitions, Directory } from "./instance/directory.ts";
import { type DoorOptions, handleHttp } from "./doors/http-door.ts";
import { type CatalogNode, InstanceCatalog } from "./instance/instance-catalog.ts";
import { InstancePages } from "./instance/instance-pages.ts";
import { ProblemIndex } from "./instance/problem-index.ts";
import type { InstanceEnvironment } from "./instance/instance-environment.ts";
import { loadAgents } from "./modules/load-agent-modules.ts";
import { agentRoutes } from "./management/routes.ts";
import { joinClient } from "./objects/client-socket.ts";
import { ObjectHost } from "./objects/object-host.ts";
import { ClusterInstances } from "./placement/cluster-instances.ts";
import { ClusterPlacement } from "./placement/cluster-placement.ts";
import type { Placement } from "./placement/placement.ts";
import type { OpenRemote } from "./remote/remote.ts";
import type { RemoteObjects } from "./remote/objects/remote-objects.ts";
import type { RemoteSockets } from "./remote/sockets/remote-sockets.ts";
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
  /** Null for a process that is alone; then there is no ownership either. */
  readonly network: NodeNetwork | null;
  readonly ownership: Ownership | null;
  /** Null for a process that is alone: it does not load what several nodes need. */
  readonly openRemote: OpenRemote | null;
  readonly authenticator: Authenticator;
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
  readonly door: AgentsDoor;
  /** No instance has work in progress. */
  readonly isQuiet: boolean;
  /** Which node runs an instance; null for a process that is alone. */
  readonly placement: Placement | null;
  /** The objects of the worker mode. */
  readonly objects: ObjectHost;
  /**
   * In a cluster, stubs reach objects on other nodes from now on. Called before the program of the worker is loaded; the returned function, when its
   * classes are registered: then this node answers calls of others.
   */
  connectObjects(): Promise<() => void>;
  /** Joins a WebSocket of an object's response to the client's socket. */
  joinClient(end: object, webSocket: WebSocket, socket: Duplex): void;
  readonly variables: AgentsParts["variables"];
}

/** How long the owners of instances may take to run `onClose` for the sockets of a node that stops. */
const REMOTE_CLOSE_MS = 2000;
/** After a node was declared dead: the others miss it within half a second, and the rest is for the claim and the restore. */
const REPLACE_MS = 3500;
/** The same for WebSockets, which may wait longer than requests: their clients do not. */
const REPLACE_SOCKETS_MS = 7500;
/** What this area offers to other nodes: the beginnings of the names. */
const SERVICES = ["agents.", "objects."];

export function createAgentsArea(parts: AgentsParts): AgentsArea {
  const settings = parts.config.file.agents;
  const definitions = new Map<string, AgentDefinition>();
  const hub = new SocketHub(settings);
  const catalog = new InstanceCatalog(
    parts.database,
    (err) => parts.logger.warn({ err }, "due and activity times of instances could not be written; retrying"),
    catalogNode(parts),
  );
  const problems = new ProblemIndex({
    database: parts.database,
    registered: () => catalog.flush(),
    isOwn: (ref) => parts.ownership === null || parts.ownership.isHeld(databaseName(ref)),
    onFailure: (err) => parts.logger.warn({ err }, "problems of instances could not be written; retrying"),
  });
  const metrics = createAgentMetrics(parts.registry, {
    instances: () => directory.size,
    sockets: () => hub.size,
    waitingTurns: () => directory.waitingTurns,
  });
  const activity = new ActivityHub();
  const streams = new ActivityStreams(activity);
  const { variables } = parts;
  const callOther: InstanceEnvironment["callAgent"] = (target, call) =>
    parts.tracing.turns === null
      ? calls.call(target, call, remote?.requests ?? null)
      : parts.tracing.turns.outgoing(
          `call ${target.agent}`,
          ["gen_ai.agent.name", target.agent],
          (traceparent) => calls.call(target, { ...call, traceparent }, remote?.requests ?? null),
        );
  const placement =
    parts.network === null || parts.ownership === null
      ? null
      : new ClusterPlacement({
          network: parts.network,
          ownership: parts.ownership,
          maxReachMs: parts.config.file.cluster.deadAfterMs + REPLACE_MS,
        });
  const environments = new AccountEnvironments(variables, definitions, callOther, parts.server);
  const cors = createCors(settings.cors);
  const environment: InstanceEnvironment = {
    store: parts.instanceStore,
    ownership: parts.ownership,
    catalog,
    problems,
    hub,
    activity,
    metrics,
    clock: parts.clock,
    logger: parts.logger,
    limits: settings,
    outgoing: parts.outgoing,
    spans: parts.tracing.turns,
    alertFeed: parts.alertFeed,
    variables,
    openSql: (instanceParts) => new SqlStorage(instanceParts) as AgentSql,
    envOf: (account) => environments.of(account),
    nameOf: (agent) => {
      if (typeof agent === "string") return kebabCase(agent);
      const known = [...definitions.values()].find(({ agentClass }) => agentClass === agent);
      return known?.kebab ?? kebabCase(agent.name);
    },
    callAgent: callOther,
  };
  const allDefinitions: Definitions = {
    keys: () => [...definitions.keys(), ...objects.definitions.keys()],
    get: (agent) => definitions.get(agent) ?? objects.definitions.get(agent),
  };
  const directory = new Directory(environment, settings, allDefinitions, (ref) =>
    parts.resourceEvents.deleted({
      accountId: ref.account,
      type: "agent",
      id: `${ref.agent}/${ref.name}`,
    }),
  );
  const calls = new AgentCalls(definitions, directory);
  const objects = new ObjectHost({
    directory,
    clock: parts.clock,
    logger: parts.logger,
    account: DEFAULT_ACCOUNT,
    isTaken: (agent) => definitions.has(agent),
    builtInNames: new Set(parts.builtInAgents.map(({ name }) => kebabCase(name))),
  });
  const localDoor = createWebhookDoor(definitions, directory);
  const remote =
    parts.network === null || placement === null || parts.openRemote === null
      ? null
      : parts.openRemote({
          network: parts.network,
          placement,
          webhooks: localDoor,
          calls,
          door: () => doorOptions,
          directory,
          hub,
          objects,
          deliveryLimits: parts.config.file.webhooks,
          now: () => parts.clock.now(),
        });
  const cluster =
    placement === null || parts.network === null || parts.ownership === null
      ? null
      : new ClusterInstances({
          ...parts,
          network: parts.network,
          ownership: parts.ownership,
          placement,
          catalog,
          directory,
          agents: () => allDefinitions.keys(),
        });
  const doorOptions: DoorOptions = {
    environment,
    cors,
    creationRate:
      settings.newInstancesPerMinute === null
        ? null
        : new TokenBucket(settings.newInstancesPerMinute, 60_000),
    access: {
      mode: settings.access === "public" ? "public" : "token",
      authorize: settings.authorize,
      authenticator: parts.authenticator,
      accountExists: (id) => parts.accounts.find(id) !== undefined,
    },
    definitions,
    directory,
    maxBodyBytes: settings.maxBodyBytes,
    maxMessageBytes: settings.maxMessageBytes,
    elsewhere: remote?.requests ?? null,
  };
  const departures = new Departures({ directory, logger: parts.logger, lost: metrics.lostCloses });
  const webSockets = new WebSocketDoor(doorOptions, hub, departures, parts.logger);
  const agentsDoor = remote?.webhooks ?? localDoor;
  let remoteSockets: RemoteSockets | null = null;
  let remoteObjects: RemoteObjects | null = null;
  let clockWatch: Repetition | null = null;
  const door = settings.worker === undefined ? agentsDoor : withObjects(agentsDoor, objects);
  const tagSubscriptions = new TagSubscriptions({
    ...parts,
    door,
    placement,
    feed: parts.tagFeed,
    subscriptions: settings.tagChanges,
  });
  return {
    mounts: [
      {
        name: "agents",
        segments: ["agents"],
        dialect: "envelope",
        isForeign: true,
        ...(cors === null ? {} : { headersFor: (request) => cors.headersFor(request) }),
        handle: (request, response, context) => handleHttp(doorOptions, request, response, context),
        upgrade: (request, socket, head, context) => webSockets.upgrade(request, socket, head, context),
      },
    ],
    routes: agentRoutes({
      definitions,
      directory,
      catalog,
      hub,
      streams,
      store: parts.instanceStore,
      tags: parts.tags,
      objects,
      elsewhere: remote,
      nodes: cluster?.nodes ?? null,
      pages: new InstancePages(parts.database),
      problems,
      now: () => parts.clock.now(),
    }),
    door,
    get isQuiet() {
      return directory.isQuiet;
    },
    placement,
    objects,
    async connectObjects() {
      const { network, ownership } = parts;
      if (network === null || ownership === null || placement === null) return () => undefined;
      // Loaded on demand: a process that is alone has no other nodes.
      const { RemoteObjects: Objects } = await import("./remote/objects/remote-objects.ts");
      const remote = new Objects({
        network,
        placement,
        ownership,
        directory,
        objects,
        account: DEFAULT_ACCOUNT,
        maxBufferedBytes: settings.maxBufferedBytes,
      });
      remoteObjects = remote;
      remote.connect();
      return () => remote.serve();
    },
    joinClient: (end, webSocket, socket) => joinClient(hub, end, webSocket, socket),
    variables: environment.variables,
    async start() {
      const loaded = await loadAgents(
        { builtIn: parts.builtInAgents, own: parts.ownAgents },
        settings.modules,
        parts.config.workingFolder,
      );
      for (const [kebab, definition] of loaded) definitions.set(kebab, definition);
      const unknown = settings.tagChanges.find(({ agent }) => !definitions.has(agent));
      if (unknown !== undefined)
        throw new ConfigError(`agents.tagChanges: no agent is named "${unknown.agent}"`);
      remote?.serve();
      if (parts.network !== null && placement !== null) {
        // A process that is alone does not load them.
        const { RemoteSockets: Sockets } = await import("./remote/sockets/remote-sockets.ts");
        const { network, logger } = parts;
        const maxBrokenMs = parts.config.file.cluster.deadAfterMs + REPLACE_SOCKETS_MS;
        remoteSockets = new Sockets({
          network,
          placement,
          definitions,
          directory,
          hub,
          departures,
          logger,
          maxBrokenMs,
        });
        webSockets.router = remoteSockets;
      }
      hub.start();
      directory.start();
      clockWatch = watchClock(
        parts.clock,
        parts.steadyClock,
        () => directory.clockChanged(),
        (err) => parts.logger.error({ err }, "due work was not looked at after the clock was set"),
      );
      cluster?.start();
      tagSubscriptions.start();
    },
    retire: (signal) => cluster?.retire(signal) ?? Promise.resolve(),
    async drain() {
      await cluster?.retireRest();
      directory.drain();
      hub.closeAll(1012, "the server is restarting");
      // Before their sources.
      remote?.drain();
      streams.close();
    },
    waitsForInstances: true,
    flush: () => catalog.flush(),
    async stop() {
      await tagSubscriptions.stop();
      // Other nodes run `onClose` of the sockets that `drain` has closed.
      await remoteSockets?.whenEmpty(REMOTE_CLOSE_MS);
      for (const prefix of SERVICES) parts.network?.withdraw(prefix);
      remoteSockets?.stop();
      departures.stop();
      cluster?.stop();
      await clockWatch?.stop();
      await directory.stop();
      // What other nodes have begun here has ended, or will not run.
      await remoteSockets?.endSessions();
      remoteObjects?.endSessions();
      await problems.close();
      await catalog.close();
    },
  };
}

/** Null for a process that is alone. */
function catalogNode({ network, ownership }: AgentsParts): CatalogNode | null {
  if (network === null || ownership === null) return null;
  return {
    get self() {
      return network.self;
    },
    epochOf: (ref) => ownership.epochOf(databaseName(ref)),
  };
}

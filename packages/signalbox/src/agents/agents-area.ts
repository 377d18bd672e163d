/** Composes the agents' area: store, catalog, directory, doors, management, and the door that webhooks use. */
import type { Duplex } from "node:stream";
import { kebabCase, SignalboxError } from "@signalbox/protocol";
import type { Registry } from "prom-client";
import type { WebSocket } from "ws";
import type { Accounts, Authenticator } from "../accounts/index.ts";
import type { AreaModule } from "../area-module.ts";
import { type Config, ConfigError } from "../config/index.ts";
import type { Clock } from "../core/clock.ts";
import { DEFAULT_ACCOUNT } from "../core/default-account.ts";
import type { OutgoingSender } from "../outgoing/index.ts";
import type { AlertFeedSlot } from "../contracts/alert-feed.ts";
import type { LazyTracing } from "../telemetry/lazy-tracing.ts";
import type { Database } from "../database/database.ts";
import type { InstanceStore } from "../engines/instance-store/index.ts";
import { checkInstanceName, type InstanceRef, keyOf } from "./instance/instance-ref.ts";
import type { ResourceEvents } from "../contracts/resource-events.ts";
import type { TagFeed } from "../contracts/tag-feed.ts";
import type { TagLookup } from "../contracts/tag-lookup.ts";
import type { Logger } from "../telemetry/logger.ts";
import { AccountEnvironments } from "./instance/account-environments.ts";
import { ActivityHub } from "./instance/activity.ts";
import { ActivityStreams } from "./management/activity-stream.ts";
import type { AgentClass } from "./api/agent.ts";
import type { AgentDefinition } from "./instance/agent-definition.ts";
import type { AgentOrigin } from "./api/current-agent.ts";
import type { Instance } from "./instance/instance.ts";
import type { AgentSql } from "./api/agent-context.ts";
import { SqlStorage } from "./objects/sql-storage.ts";
import { createCors } from "./doors/cors.ts";
import { CreationRate } from "./doors/creation-rate.ts";
import { createAgentMetrics } from "./agent-metrics.ts";
import type { AgentsDoor } from "../contracts/agents-door.ts";
import type { AgentCall } from "./api/agent-stub.ts";
import { withObjects } from "./doors/object-deliveries.ts";
import { Departures } from "./doors/departures.ts";
import { createWebhookDoor } from "./doors/webhook-door.ts";
import { type Definitions, Directory } from "./instance/directory.ts";
import { type DoorOptions, handleHttp } from "./doors/http-door.ts";
import { InstanceCatalog } from "./instance/instance-catalog.ts";
import type { InstanceEnvironment } from "./instance/instance-environment.ts";
import { loadAgents } from "./modules/load-agent-modules.ts";
import { callMethod } from "./instance/method-call.ts";
import { agentRoutes } from "./management/routes.ts";
import { joinClient } from "./objects/client-socket.ts";
import { ObjectHost } from "./objects/object-host.ts";
import { SocketHub } from "./connections/socket-hub.ts";
import { TagSubscriptions } from "./doors/tag-subscriptions.ts";
import { WebSocketDoor } from "./doors/websocket-door.ts";

export interface AgentsParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly database: Database;
  readonly instanceStore: InstanceStore;
  readonly authenticator: Authenticator;
  readonly accounts: Pick<Accounts, "find">;
  readonly resourceEvents: ResourceEvents;
  readonly registry: Registry;
  readonly outgoing: OutgoingSender;
  readonly tracing: Pick<LazyTracing, "turns">;
  readonly alertFeed: AlertFeedSlot;
  /** Agents that are part of the service. */
  readonly builtInAgents: readonly AgentClass[];
  readonly tags?: TagLookup | undefined;
  readonly tagFeed: TagFeed;
}

export interface AgentsArea extends AreaModule {
  readonly door: AgentsDoor;
  /** The objects of the worker mode. */
  readonly objects: ObjectHost;
  /** Joins a WebSocket of an object's response to the client's socket. */
  joinClient(end: object, webSocket: WebSocket, socket: Duplex): void;
  /** Variables of the process that agents may see. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** Variables of the service that agents must not see. */
const HIDDEN_VARIABLES: ReadonlySet<string> = new Set([
  "SIGNALBOX_ROOT_TOKEN",
  "SIGNALBOX_ENCRYPTION_KEY",
  "SIGNALBOX_MASTER_KEY",
  "DATABASE_URL",
]);

export function createAgentsArea(parts: AgentsParts): AgentsArea {
  const settings = parts.config.file.agents;
  const definitions = new Map<string, AgentDefinition>();
  const hub = new SocketHub(settings);
  const catalog = new InstanceCatalog(parts.database, (err) =>
    parts.logger.warn({ err }, "due and activity times of instances could not be written; retrying"),
  );
  const metrics = createAgentMetrics(parts.registry, {
    instances: () => directory.size,
    sockets: () => hub.size,
    waitingTurns: () => directory.waitingTurns,
  });
  const activity = new ActivityHub();
  const streams = new ActivityStreams(activity);
  const variables = Object.fromEntries(
    Object.entries(parts.config.environment).filter(([name]) => !HIDDEN_VARIABLES.has(name)),
  );
  const callOther: InstanceEnvironment["callAgent"] = (target, call) =>
    parts.tracing.turns === null
      ? callAgent(definitions, directory, target, call)
      : parts.tracing.turns.outgoing(`call ${target.agent}`, ["gen_ai.agent.name", target.agent], () =>
          callAgent(definitions, directory, target, call),
        );
  const environments = new AccountEnvironments(variables, definitions, callOther);
  const cors = createCors(settings.cors);
  const environment: InstanceEnvironment = {
    store: parts.instanceStore,
    catalog,
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
  const objects = new ObjectHost({
    directory,
    clock: parts.clock,
    logger: parts.logger,
    account: DEFAULT_ACCOUNT,
    isTaken: (agent) => definitions.has(agent),
    builtInNames: new Set(parts.builtInAgents.map(({ name }) => kebabCase(name))),
  });
  const doorOptions: DoorOptions = {
    environment,
    cors,
    creationRate:
      settings.newInstancesPerMinute === null ? null : new CreationRate(settings.newInstancesPerMinute),
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
  };
  const departures = new Departures({ directory, logger: parts.logger, lost: metrics.lostCloses });
  const webSockets = new WebSocketDoor(doorOptions, hub, departures, parts.logger);
  const agentsDoor = createWebhookDoor(definitions, directory);
  const door = settings.worker === undefined ? agentsDoor : withObjects(agentsDoor, objects);
  const tagSubscriptions = new TagSubscriptions({
    ...parts,
    door,
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
    }),
    door,
    objects,
    joinClient: (end, webSocket, socket) => joinClient(hub, end, webSocket, socket),
    variables: environment.variables,
    async start() {
      const loaded = await loadAgents(parts.builtInAgents, settings.modules, parts.config.workingFolder);
      for (const [kebab, definition] of loaded) definitions.set(kebab, definition);
      const unknown = settings.tagChanges.find(({ agent }) => !definitions.has(agent));
      if (unknown !== undefined)
        throw new ConfigError(`agents.tagChanges: no agent is named "${unknown.agent}"`);
      hub.start();
      directory.start();
      tagSubscriptions.start();
    },
    firstCommands: (url, tokenExpression) => [
      {
        title: "List the latest events of the entity my-device",
        command: `curl -s -X POST -H "Authorization: Bearer ${tokenExpression}" ${url}/agents/webhook-agent/my-device/rpc/getEvents -d '[]'`,
      },
    ],
    async drain() {
      directory.drain();
      hub.closeAll(1012, "the server is restarting");
      streams.close();
    },
    waitsForInstances: true,
    async stop() {
      await tagSubscriptions.stop();
      departures.stop();
      await directory.stop();
      await catalog.close();
    },
  };
}

/** A call between instances of one account. Any method of the called agent's own class is allowed, because both are the operator's code. */
async function callAgent(
  definitions: ReadonlyMap<string, AgentDefinition>,
  directory: Directory,
  target: InstanceRef,
  call: AgentCall,
): Promise<unknown> {
  const { callers } = call;
  const definition = definitions.get(target.agent);
  if (definition === undefined)
    throw new SignalboxError("agent_not_found", { message: `No agent "${target.agent}"` });
  const name = checkInstanceName(target.name);
  if (call.kind === "method" && !definition.hasMethod(call.method)) {
    throw new SignalboxError("agent_method_unknown", { message: `Method ${call.method} does not exist` });
  }
  const isConcurrent = call.kind === "method" && definition.callables.get(call.method)?.concurrent === true;
  if (!definition.isInterleaving && !isConcurrent && callers.includes(keyOf(target))) {
    throw new SignalboxError("agent_call_cycle", {
      message: `${target.agent}/${name} is waiting for this call and cannot answer it`,
    });
  }
  const instance = directory.get(definition, target.account, name);
  const origin = call.isReadonly ? READONLY_CALLER : undefined;
  if (call.kind === "fetch") return requestAgent(instance, call.request, { callers, origin });
  const result = await callMethod(instance, call.method, call.args, { callers, origin, isConcurrent });
  return result === undefined ? undefined : JSON.parse(result);
}

/** A caller that must not write calls another agent: a method that writes fails there too. */
const READONLY_CALLER: AgentOrigin = {
  requireWritable() {
    throw new SignalboxError("agent_readonly");
  },
};

async function requestAgent(
  instance: Instance,
  request: Request,
  { callers, origin }: { callers: readonly string[]; origin: AgentOrigin | undefined },
): Promise<Response> {
  const answer: unknown = await instance.run<unknown>({
    kind: "request",
    label: `${request.method} ${new URL(request.url).pathname}`,
    callers,
    origin: { ...origin, request },
    body: ({ agent }) => agent.onRequest(request, {}),
  });
  if (answer instanceof Response) return answer;
  throw new SignalboxError("agent_failed", { message: "onRequest did not return a Response" });
}

/** Creates the areas and connects them. Only this file passes one area to another. */
import type { Registry } from "prom-client";
import type { Accounts, Authenticator, MasterKeys, Tokens } from "../accounts/index.ts";
import { createAlertsArea } from "../alerts/index.ts";
import type { AlertFeed } from "../contracts/alert-feed.ts";
import {
  type AgentClass,
  type AgentsArea,
  type AgentsCluster,
  createAgentsArea,
  loadConfigured,
} from "../agents/index.ts";
import type { AreaModule } from "../area-module.ts";
import type { AuditTrail } from "../contracts/audit-trail.ts";
import type { Config } from "../config/index.ts";
import type { ResourceEvents } from "../contracts/resource-events.ts";
import type { Clock } from "../core/clock.ts";
import type { Sealing } from "../core/sealing.ts";
import type { SharedPlaces } from "../core/shared-pool.ts";
import { createGatewayArea, type GatewayArea } from "../gateway/index.ts";
import { OutgoingWebhooks } from "../outgoing/index.ts";
import type { LazyTracing } from "../telemetry/lazy-tracing.ts";
import { createTagsArea } from "../tags/index.ts";
import type { OwnServer } from "../contracts/own-server.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ClientAddress } from "../engines/ip-address/index.ts";
import { createWebhooksArea, WebhookAgent } from "../webhooks/index.ts";
import { agentVariables } from "./agent-variables.ts";
import type { Storage } from "./storage.ts";
import { networkOf, nodeOf, type Topology } from "./topology.ts";

export interface AreaParts extends Storage {
  readonly audit: AuditTrail;
  readonly server: OwnServer;
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A monotonic clock. */
  readonly steadyClock: Clock;
  readonly sealing: Sealing;
  readonly masterKeys: MasterKeys;
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly authenticator: Authenticator;
  /** Of requests and WebSockets, by account: no account takes all connections. */
  readonly places: SharedPlaces;
  readonly resourceEvents: ResourceEvents;
  readonly registry: Registry;
  readonly tracing: LazyTracing;
  readonly ownAgents: readonly AgentClass[];
  readonly onFatal: (error: Error) => void;
}

export interface Areas {
  readonly gateway: GatewayArea;
  readonly agents: AgentsArea;
  readonly webhooks: AreaModule;
  /** All areas, in the order in which they are started. */
  readonly all: readonly AreaModule[];
}

const BUILT_IN_AGENTS: readonly AgentClass[] = [WebhookAgent];

/**
 * Loads the modules of agents before there is a data folder, and throws what is wrong with them. With a worker, nothing: its bindings must exist when
 * modules load, and they need the areas.
 */
export async function tryModules(config: Config, ownAgents: readonly AgentClass[]): Promise<void> {
  if (config.file.agents.worker !== undefined) return;
  await loadConfigured({ config, builtInAgents: BUILT_IN_AGENTS, ownAgents });
}

export function createAreas(parts: AreaParts): Areas {
  const { databases, topology } = parts;
  const tags = createTagsArea({ ...parts, database: databases.tags });
  const outgoing = new OutgoingWebhooks({ ...parts.config.file.outgoing, clock: parts.clock });
  const feed: { current: AlertFeed | null } = { current: null };
  const agents = createAgentsArea({
    ...parts,
    cluster: agentsClusterOf(topology),
    instanceStore: topology.instances,
    database: databases.agents,
    outgoing,
    alertFeed: feed,
    builtInAgents: BUILT_IN_AGENTS,
    tags: tags.lookup,
    tagFeed: tags.feed,
    variables: agentVariables(parts.config, parts.logger),
  });
  const addresses = new ClientAddress(parts.config.file.audit.trustedProxies);
  const webhooks = createWebhooksArea({
    ...parts,
    cluster: networkOf(topology),
    database: databases.webhooks,
    plainDatabase: databases.intake,
    alertFeed: feed,
    requests: outgoing.requests,
    agents: agents.deliveries,
    tags: tags.lookup,
    addressOf: ({ socket, headers }) =>
      addresses.of(
        // A call from inside the process has no socket.
        (socket as { readonly remoteAddress?: string } | undefined)?.remoteAddress?.replace(/^::ffff:/, "") ??
          null,
        String(headers["x-forwarded-for"] ?? ""),
      ),
  });
  const node = nodeOf(topology);
  const gateway = createGatewayArea({
    ...parts,
    database: databases.gateway,
    incarnation: node === null ? null : () => node.incarnation,
    nodes: networkOf(topology),
    alertFeed: feed,
    tags: tags.lookup,
    requests: outgoing.requests,
  });
  const alerts = createAlertsArea({ ...parts, database: databases.alerts, outgoing, feed });
  return { gateway, agents, webhooks, all: [gateway, agents, webhooks, tags, alerts] };
}

function agentsClusterOf(topology: Topology): AgentsCluster | null {
  if (topology.kind !== "cluster") return null;
  const { network, instances, openReach } = topology;
  return { network, ownership: instances.ownership, openReach };
}

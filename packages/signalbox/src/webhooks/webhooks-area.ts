/** Creates the webhook area for the composition root. */
import { SignalboxError } from "@signalbox/protocol";
import type { Registry } from "prom-client";
import type { AgentDeliveries } from "../agents/index.ts";
import type { AreaModule } from "../area-module.ts";
import { type Config, ConfigError } from "../config/index.ts";
import { objectClassOf } from "../contracts/object-agent.ts";
import type { AlertFeedSlot } from "../contracts/alert-feed.ts";
import type { Clock } from "../core/clock.ts";
import { nearestName } from "../core/nearest-name.ts";
import { SharedPlaces } from "../core/shared-pool.ts";
import type { Sealing } from "../core/sealing.ts";
import type { Database } from "../database/database.ts";
import type { SharedSettings } from "../database/shared-settings.ts";
import type { RequestSender } from "../outgoing/index.ts";
import type { NodeNetwork } from "../contracts/node-network.ts";
import type { OtherNodes } from "../contracts/other-nodes.ts";
import type { TagLookup } from "../contracts/tag-lookup.ts";
import { type HttpRequest, MemoryBudget } from "../engines/http-server/index.ts";
import type { LazyTracing } from "../telemetry/lazy-tracing.ts";
import type { Logger } from "../telemetry/logger.ts";
import { LabelledCounter, registerGauge } from "../telemetry/instruments.ts";
import { Certificates } from "./certificates.ts";
import { DeliveryLog } from "./delivery-log.ts";
import { EntityClaims } from "./entity-claims.ts";
import { firstCommands } from "./first-commands.ts";
import { createFrontDoor } from "./front-door.ts";
import { Intake } from "./intake.ts";
import { LateDeliveries } from "./late-deliveries.ts";
import { LateDeliveryTable } from "./late-delivery-table.ts";
import { OtherDeliveries } from "./other-deliveries.ts";
import { RejectionBudget } from "./rejection-budget.ts";
import { RejectionNotice } from "./rejection-notice.ts";
import { webhookRoutes } from "./routes.ts";
import { Routing } from "./routing/index.ts";
import { createSources, type Source } from "./source.ts";

export interface WebhooksParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly database: Database;
  /** `database` without the audit log, for intake. */
  readonly plainDatabase: Database;
  readonly registry: Registry;
  readonly agents: AgentDeliveries;
  readonly tracing: Pick<LazyTracing, "turns">;
  readonly alertFeed: AlertFeedSlot;
  readonly tags?: TagLookup | undefined;
  readonly settings: SharedSettings;
  readonly sealing: Sealing;
  readonly requests: RequestSender;
  /** Null if there is no other node. */
  readonly cluster: (OtherNodes & Pick<NodeNetwork, "self" | "members" | "onChange" | "call">) | null;
  /** Address of the sender of a request, past trusted proxies. */
  readonly addressOf: (request: HttpRequest) => string | null;
}

export function createWebhooksArea(parts: WebhooksParts): AreaModule {
  const { clock, logger, database, plainDatabase, agents } = parts;
  const { webhooks, listener } = parts.config.file;
  const config = { ...webhooks, publicUrl: webhooks.publicUrl ?? listener.publicUrl };
  const sources = createSources(config, parts.config.environment);
  const generic = sources.get("generic");
  if (generic === undefined) throw new Error("the generic source is built in");
  const inFlight = new SharedPlaces(config.maxInFlight);
  const bodies = new MemoryBudget({
    maxBytes: config.maxBufferedBytes,
    stallMs: config.bodyTimeoutMs,
    totalMs: config.bodyTimeoutMs,
  });
  const metrics = createMetrics(parts.registry, inFlight, bodies, () => late.count);
  const log = new DeliveryLog(plainDatabase, logger, {
    keep: config.keepDeliveries,
    others: parts.cluster === null ? null : new OtherDeliveries(parts.cluster),
    onDropped: (count) => metrics.unlisted.add(count),
  });
  const notice = new RejectionNotice(logger, clock);
  const rejections = new RejectionBudget(clock);
  const lateTable = new LateDeliveryTable(database);
  const late = new LateDeliveries({
    table: lateTable,
    clock,
    logger,
    nodes: parts.cluster,
    async deliver(delivery) {
      const source = sources.get(delivery.source);
      if (source === undefined) throw new SignalboxError("webhook_unknown_source");
      return intake.deliverLate(source, delivery);
    },
  });
  const claims = new EntityClaims(plainDatabase, (error) => notice.claimsFailed(error));
  const routing = new Routing({
    ...parts,
    sources,
    environment: parts.config.environment,
    claims,
    log,
    nodes: parts.cluster,
    mayBePrivate: parts.config.file.outgoing.allowPrivateHosts,
    keepDays: config.keepEventsDays,
    maxStoredBytes: config.maxStoredBytes,
    deliver: (source, delivery, sent) => intake.deliverLate(source, delivery, sent),
  });
  const intake = new Intake({
    late,
    certificates: new Certificates(parts.requests, clock),
    routing,
    answerWithinMs: config.answerWithinMs,
    agents,
    claims,
    inFlight,
    log,
    rejections,
    clock,
    notice,
    spans: parts.tracing.turns,
    alertFeed: parts.alertFeed,
    counter: metrics.deliveries,
  });
  return {
    mounts: [createFrontDoor({ sources, generic, intake, bodies, config, addressOf: parts.addressOf })],
    routes: webhookRoutes({
      sources,
      log,
      intake,
      rejections,
      late,
      lateTable,
      clock,
      routing,
      tags: parts.tags,
    }),
    // Agents are registered by now: a misspelt agent must be reported at the start and not by the first delivery.
    async start() {
      requireAgents(sources, agents);
      await routing.load();
    },
    async begin() {
      await late.start();
      await routing.start();
    },
    flush: () => log.flush(),
    async stop() {
      await routing.stop();
      await late.stop();
      await log.close();
    },
    firstCommands: (_url, signalbox) => firstCommands(generic, signalbox),
  };
}

function requireAgents(sources: ReadonlyMap<string, Source>, agents: AgentDeliveries): void {
  for (const source of sources.values()) {
    if (objectClassOf(source.agent) !== null && !agents.hasAgent(source.agent)) {
      throw new ConfigError(
        `webhooks.sources.${source.name}.object: expected a worker (agents.worker), found none`,
      );
    }
    if (!agents.hasAgent(source.agent)) {
      const names = [...agents.agentNames()];
      const nearest = nearestName(source.agent, names);
      const hint = nearest === undefined ? `agents: ${names.join(", ")}` : `did you mean "${nearest}"?`;
      throw new ConfigError(
        `webhooks.sources.${source.name}.agent: expected the kebab-case name of an agent, found "${source.agent}"; ${hint}`,
      );
    }
  }
}

function createMetrics(
  registry: Registry,
  inFlight: SharedPlaces,
  bodies: MemoryBudget,
  lateCount: () => number,
) {
  const gauge = (name: string, help: string, read: () => number) =>
    registerGauge(registry, { name: `signalbox_webhook_${name}`, help }, read);
  gauge(
    "late_deliveries",
    "Deliveries that were answered 202 and have not been handled by their instances yet.",
    lateCount,
  );
  gauge("in_flight", "Verified deliveries being processed.", () => inFlight.used);
  gauge("buffered_bytes", "Bytes of delivery bodies held in memory.", () => bodies.used);
  return {
    unlisted: new LabelledCounter(registry, {
      name: "signalbox_webhook_unlisted_total",
      help: "Verified deliveries missing from the inspector because the database could not be written for too long.",
    }),
    deliveries: new LabelledCounter(registry, {
      name: "signalbox_webhook_deliveries_total",
      help: "Deliveries by source and outcome.",
      labels: ["source", "status"],
    }),
  };
}

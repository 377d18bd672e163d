/** The gateway area: creates the data plane, its settings and its management routes, and connects them. */
import type { Registry } from "prom-client";
import { KeptAnswers } from "./exchange/kept-answers.ts";
import { DEFAULT_ACCOUNT } from "../core/default-account.ts";
import {
  type Accounts,
  type Authenticator,
  type GuardrailRule,
  guardrailRules,
  type MasterKeys,
  type Tokens,
} from "../accounts/index.ts";
import type { AreaModule } from "../area-module.ts";
import type { Config } from "../config/index.ts";
import type { Clock } from "../core/clock.ts";
import type { Sealing } from "../core/sealing.ts";
import type { CallLog, CallQuota, GatewayRef } from "../engines/call-log/index.ts";
import type { Database } from "../database/database.ts";
import type { SharedSettings } from "../database/shared-settings.ts";
import type { ResourceEvents } from "../contracts/resource-events.ts";
import type { OtherNodes } from "../contracts/other-nodes.ts";
import type { OwnServer } from "../contracts/own-server.ts";
import type { AlertFeedSlot } from "../contracts/alert-feed.ts";
import type { TagLookup } from "../contracts/tag-lookup.ts";
import type { LazyTracing } from "../telemetry/lazy-tracing.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ResponseCache } from "./cache/response-cache.ts";
import { LongWork } from "../core/long-work.ts";
import type { SharedPlaces } from "../core/shared-pool.ts";
import { MemoryBudget } from "../engines/http-server/index.ts";
import { CallRunner } from "./call/call-runner.ts";
import { ResumableRuns } from "./call/resumable-runs.ts";
import { guardrailRoutes } from "./guardrail-routes.ts";
import { storedFindingsRoutes } from "./stored-findings-routes.ts";
import { Guardrails } from "./guardrails/guardrails.ts";
import { type AskWebhook, Judges } from "./guardrails/judges.ts";
import { newWebhookId, type RequestSender, signOutgoing } from "../outgoing/index.ts";
import { AccountSettings } from "./limits/account-settings.ts";
import { GatewayDoor } from "./door/gateway-door.ts";
import { JobStore } from "./jobs/job-store.ts";
import { Jobs } from "./jobs/jobs.ts";
import { KeyRates } from "./keys/key-rates.ts";
import { KeySources } from "./keys/key-source.ts";
import { replayRoutes } from "./log-api/replay-routes.ts";
import { createLogPush, logPushRoutes } from "./log-push/create-log-push.ts";
import { scanRoutes } from "./log-api/scan-routes.ts";
import { inTurns } from "./log-api/log-reads.ts";
import { bookUsageRoute } from "./log-api/book-usage.ts";
import { callLogRoutes } from "./log-api/call-log-routes.ts";
import { tokenUsageRoute, usageRoute } from "./log-api/usage-route.ts";
import { createGatewayLimits } from "./limits/create-limits.ts";
import { gatewayOwner } from "./limits/limits.ts";
import { priceListRoutes } from "./limits/price-list-routes.ts";
import { limitRoutes } from "./limits/limit-routes.ts";
import { GatewayMetrics } from "./metrics.ts";
import type { PlaceAtHost } from "../http/area.ts";
import { createHostPaths } from "./door/host-path.ts";
import { ModelList } from "./door/model-list.ts";
import { ModelNames } from "./models/model-names.ts";
import { CustomProviders } from "./providers/custom-providers.ts";
import { CUSTOM_PREFIX, ProviderDirectory } from "./providers/provider.ts";
import { askServer } from "./providers/identity/ask-server.ts";
import { CloudIdentities } from "./providers/identity/cloud-identities.ts";
import { createSigners } from "./providers/signers.ts";
import { createSharedProviders } from "./providers/shared-providers.ts";
import { customProviderRoutes } from "./providers/custom-provider-routes.ts";
import { DEFAULT_GATEWAY, type Gateway } from "./settings/gateway.ts";
import { type DeletionStep, GatewayDeletions } from "./settings/gateway-deletions.ts";
import { Gateways } from "./settings/gateways.ts";
import { providerKeyRoutes } from "./keys/provider-key-routes.ts";
import { ProviderKeys } from "./keys/provider-keys.ts";
import { OtelReceivers } from "./settings/otel-receivers.ts";
import { LazyGatewayTracing } from "./trace/lazy-gateway-tracing.ts";
import { gatewayRoutes } from "./settings/gateway-routes.ts";
import { UpstreamClient } from "../engines/relay/index.ts";
import { DynamicRoutes } from "./routes/dynamic-routes.ts";
import { AutoRouter } from "./routes/auto-router.ts";
import { RouteResolver } from "./routes/resolve-route.ts";
import { RouteCounters } from "./routes/route-counters.ts";
import { dynamicRouteRoutes } from "./routes/dynamic-route-routes.ts";
import { Circuits } from "./reliability/circuits.ts";
import { circuitRoutes } from "./reliability/circuit-routes.ts";
import { TargetLatencies } from "./reliability/target-latencies.ts";

export { identityVariables } from "./keys/identity-variables.ts";
export { isProviderKeyName } from "./keys/provider-key-name.ts";

export interface GatewayParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Monotonic; for rate limits. */
  readonly steadyClock: Clock;
  /** The current identity of this node in the database that nodes share; null with SQLite. */
  readonly incarnation: (() => string) | null;
  /** Null for a process that is alone. */
  readonly nodes: OtherNodes | null;
  readonly sealing: Sealing;
  /** Encrypt stored provider keys. */
  readonly masterKeys: MasterKeys;
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly authenticator: Authenticator;
  /** Of requests and WebSockets, by account. */
  readonly places: SharedPlaces;
  readonly resourceEvents: ResourceEvents;
  readonly registry: Registry;
  readonly callLog: CallLog;
  /** For replays of stored calls. */
  readonly server: OwnServer;
  /** For `tag` filters of the gateway list and usage by tag. */
  readonly tags: TagLookup;
  readonly tracing: LazyTracing;
  readonly alertFeed: AlertFeedSlot;
  /** For guardrails that ask a webhook. */
  readonly requests: RequestSender;
}

export interface GatewayArea extends AreaModule {
  exists(accountId: string, gatewayId: string): boolean;
  /** Paths of host names that stand for a gateway; null: there are none. */
  readonly placeAtHost: PlaceAtHost | null;
  /** Gateways that require no token: every client that reaches the listener may use them. */
  withoutAuthentication(): readonly GatewayRef[];
}

export function createGatewayArea(parts: GatewayParts): GatewayArea {
  const { clock, callLog, logger } = parts;
  const client = createClient(parts.config);
  const settings = createSettings(parts, client);
  const { gateways, customProviders, providers, providerKeys, deletions, dynamicRoutes } = settings;
  const otel = new OtelReceivers({
    sealing: parts.sealing,
    mayBePrivate: parts.config.file.outgoing.allowPrivateHosts,
  });
  const tracing = new LazyGatewayTracing(parts.tracing, otel);
  const accountGuardrails = new AccountSettings<readonly GuardrailRule[]>(
    parts,
    "guardrails",
    new Map(),
    (stored) => guardrailRules.parse(stored),
  );
  const guardrails = new Guardrails(accountGuardrails.values, parts.config.file.gateway.guardrails);
  const secretOf = (accountId: string) => `whsec_${parts.sealing.derive(`guardrails of ${accountId}`)}`;
  const judges = new Judges({ server: parts.server, askWebhook: createWebhookJudge(parts, secretOf) });
  const { door, runner, jobs, gatewayLimits, circuits, longBodies } = createDataPlane(
    parts,
    settings,
    client,
    tracing,
    guardrails,
    judges,
  );
  const logPush = createLogPush(parts);
  const reads = inTurns(callLog);
  const exists = (accountId: string, gatewayId: string) => gateways.find(accountId, gatewayId) !== undefined;
  return {
    mounts: [door],
    placeAtHost: createHostPaths(parts.config.file.gateway.hosts),
    exists,
    withoutAuthentication: () =>
      parts.accounts
        .list()
        .flatMap(({ id }) => gateways.list(id))
        .filter((gateway) => !gateway.settings.authentication)
        .map(toRef),
    routes: [
      ...gatewayRoutes({ gateways, providers, tokens: parts.tokens, tags: parts.tags, otel }),
      ...callLogRoutes({ callLog, reads, gatewayExists: exists }),
      ...scanRoutes({ callLog: reads }),
      ...logPushRoutes(logPush),
      ...replayRoutes({ callLog, gatewayExists: exists, server: parts.server }),
      usageRoute({ callLog: reads, clock, tags: parts.tags, tokens: parts.tokens }),
      tokenUsageRoute({ callLog: reads, clock, tags: parts.tags, tokens: parts.tokens }),
      ...providerKeyRoutes({ gateways, keys: providerKeys, providers, clock }),
      ...customProviderRoutes(customProviders),
      ...limitRoutes({ gatewayLimits, gateways, tokens: parts.tokens }),
      bookUsageRoute({ gatewayLimits, gateways, tokens: parts.tokens, callLog, clock }),
      ...priceListRoutes({ gatewayLimits, callLog: reads, clock }),
      ...circuitRoutes(gateways, circuits, parts.settings),
      ...dynamicRouteRoutes(gateways, dynamicRoutes),
      ...guardrailRoutes({ gateways, accountGuardrails, guardrails, longBodies, secretOf }),
      ...storedFindingsRoutes({ reads, longBodies }),
    ],
    async start() {
      await gateways.load(DEFAULT_ACCOUNT);
      await tracing.start();
      await deletions.finishAll((gateway, error) =>
        logger.error(
          { err: error, gateway },
          "cannot remove all data of a deleted gateway; retrying at the next start",
        ),
      );
      await customProviders.load();
      await providerKeys.load();
      providerKeys.start();
      await dynamicRoutes.load();
      await accountGuardrails.load();
      await logPush?.start();
      await gatewayLimits.start(({ accountId, key }) =>
        gateways.list(accountId).some((gateway) => gatewayOwner(gateway).key === key),
      );
      jobs.start();
    },
    drain: () => door.closeSockets(),
    async stop() {
      await logPush?.stop();
      await jobs.stop();
      runner.close();
      client.close();
      await providerKeys.stop();
      await gatewayLimits.stop();
    },
    firstCommands: (url) => [
      {
        card: "gateway",
        title: "Call the built-in echo provider through the gateway",
        command: `curl -s ${url}/v1/${DEFAULT_ACCOUNT}/${DEFAULT_GATEWAY}/echo/chat/completions -H 'content-type: application/json' -d '{"model":"echo","messages":[{"role":"user","content":"Hello"}]}'`,
      },
    ],
  };
}

/** Enough for a verdict with its categories; a longer answer is none. */
const MAX_VERDICT_BYTES = 16 * 1024;

function createWebhookJudge(
  { clock, requests }: GatewayParts,
  secretOf: (accountId: string) => string,
): AskWebhook {
  return (accountId, url, body, timeoutMs, signal) => {
    const time = clock.now();
    const id = newWebhookId(time);
    return requests.send({
      url,
      method: "POST",
      body,
      timeoutMs,
      signal,
      keptBytes: MAX_VERDICT_BYTES,
      headers: {
        "user-agent": "signalbox",
        "content-type": "application/json",
        "content-length": String(Buffer.byteLength(body)),
        ...signOutgoing({ id, time, body, secret: secretOf(accountId) }),
      },
    });
  };
}

/** Gateways, providers and keys: what the database stores and calls read from memory. */
function createSettings(parts: GatewayParts, client: UpstreamClient) {
  const { config, database, settings, clock, sealing, masterKeys, logger, tokens } = parts;
  const { callLog, resourceEvents } = parts;
  const keys = config.file.gateway;
  const steps: readonly DeletionStep[] = [
    ({ accountId, gatewayId }) => tokens.revokeOfGateway(accountId, gatewayId),
    (gateway) => callLog.dropGateway(gateway),
    ({ accountId, gatewayId }) => resourceEvents.deleted({ accountId, type: "ai_gateway", id: gatewayId }),
  ];
  const deletions = new GatewayDeletions(database, steps, settings.isShared);
  const customProviders = new CustomProviders({
    database,
    settings,
    clock,
    mayBePrivate: keys.allowPrivateCustomProviders,
    sealing,
    onUnreadable: ({ accountId, slug }) =>
      logger.error(
        { accountId, provider: CUSTOM_PREFIX + slug },
        `cannot decrypt the stored headers of ${CUSTOM_PREFIX}${slug}: start with the SIGNALBOX_ENCRYPTION_KEY (or the encryption-key file in the data folder) that they were stored with, or set the headers again`,
      ),
  });
  const signers = createSigners(client, clock, config.file.providers);
  const providers = new ProviderDirectory(
    createSharedProviders(config.file.providers, signers),
    (accountId, slug) => customProviders.findProvider(accountId, slug),
  );
  return {
    deletions,
    customProviders,
    gateways: new Gateways(database, clock, deletions, settings),
    providers,
    dynamicRoutes: new DynamicRoutes({ database, settings, clock, providers }),
    providerKeys: new ProviderKeys({
      database,
      settings,
      clock,
      masterKeys,
      sources: new KeySources(config.environment, clock),
      identities: new CloudIdentities({
        ask: askServer(client),
        clock,
        environment: config.environment,
        region: config.file.providers["aws-bedrock"]?.region,
      }),
      secretFolder: keys.secretFolder,
      grants: keys.providerKeys,
      customAddress: (accountId, slug) =>
        slug.startsWith(CUSTOM_PREFIX)
          ? customProviders.addressOf(accountId, slug.slice(CUSTOM_PREFIX.length))
          : undefined,
      onProblem: (key, problem) =>
        logger.error(
          { accountId: key.accountId, gatewayId: key.gatewayId, provider: key.providerSlug, keyId: key.id },
          problem === "refused"
            ? `${key.providerSlug} refused the stored key ${key.alias || key.id}; it is not used until it is edited`
            : `cannot decrypt the stored key ${key.alias || key.id} of ${key.providerSlug}: start with the SIGNALBOX_MASTER_KEY (or the master-key file in the data folder) that it was stored with, or set the key again`,
        ),
      onError: (error) => logger.error({ err: error }, "cannot store the state of a provider key"),
    }),
  };
}

/** What serves calls: the door, the runner with its limits, and the upstream client. */
function createDataPlane(
  parts: GatewayParts,
  { gateways, providers, providerKeys, dynamicRoutes }: ReturnType<typeof createSettings>,
  client: UpstreamClient,
  tracing: LazyGatewayTracing,
  guardrails: Guardrails,
  judges: Judges,
) {
  const { config, clock, steadyClock, registry, callLog, authenticator } = parts;
  const keys = config.file.gateway;
  const metrics = new GatewayMetrics(registry, () => callLog.size);
  const budget = new MemoryBudget({ maxBytes: keys.maxBufferedBytes, stallMs: keys.uploadStallMs });
  metrics.readBufferedBytes = () => budget.used;
  const circuits = new Circuits(steadyClock);
  metrics.showCircuits(registry, circuits);
  const gatewayLimits = createGatewayLimits(parts);
  const { limits, ledger } = gatewayLimits;
  if (parts.incarnation !== null) providerKeys.shareRates(new KeyRates(ledger));
  gateways.listen({
    async onChanged(gateway) {
      callLog.setQuota(toRef(gateway), quotaOf(gateway));
      await tracing.follow(gateway);
      await guardrails.prepare(gateway);
    },
    onDeleted(gateway) {
      gatewayLimits.forgetGateway(gateway);
      circuits.forget(gateway.accountId, gateway.id);
      dynamicRoutes.forget(gateway);
      providerKeys.forget(gateway);
    },
  });
  const { prices } = gatewayLimits;
  const latencies = new TargetLatencies();
  const runs = new ResumableRuns();
  const longBodies = new LongWork();
  const runner = new CallRunner({
    runs,
    client,
    callLog,
    gateways,
    metrics,
    prices,
    payloadBytes: keys.logs.maxBodyBytes,
    clock,
    cache: new ResponseCache(keys.cacheBytes, clock),
    limits,
    guardrails,
    judges,
    findToken: (accountId, id) => parts.tokens.find(accountId, id),
    longBodies,
    circuits,
    latencies,
    tracing,
    alertFeed: parts.alertFeed,
  });
  const jobs = new Jobs({
    store: new JobStore(parts.database),
    clock,
    server: parts.server,
    gateways,
    tokens: parts.tokens,
    limits: gatewayLimits,
    callLog,
    onError: (error) =>
      parts.logger.error({ err: error }, "cannot settle a job; it is tried again within an hour"),
  });
  const modelNames = new ModelNames(keys.models, providers);
  const door = new GatewayDoor({
    runs,
    clock,
    modelNames,
    modelList: new ModelList({
      names: modelNames,
      providers,
      keys: providerKeys,
      routes: dynamicRoutes,
      prices: keys.prices,
      clock,
      auto: keys.auto.models,
    }),
    gateways,
    providers,
    keys: providerKeys,
    injectsStreamUsage: keys.injectStreamUsage,
    keptAnswers: new KeptAnswers(clock),
    nodes: parts.nodes,
    guardrails,
    judges,
    server: parts.server,
    jobs,
    authenticator,
    metrics,
    stepOrder: { prices, latencies },
    routes: new RouteResolver({
      routes: dynamicRoutes,
      counters: new RouteCounters(ledger),
      providers,
    }),
    autoRouter: new AutoRouter({
      models: keys.auto.models,
      names: modelNames,
      keys: providerKeys,
      prices,
      clock,
    }),
    openRealtime: async () => {
      const { RealtimeDoor } = await import("./realtime/realtime-door.ts");
      return new RealtimeDoor({
        gateways,
        authenticator,
        tokens: parts.tokens,
        server: parts.server,
        providers,
        keys: providerKeys,
        injectsStreamUsage: keys.injectStreamUsage,
        modelNames,
        metrics,
        clock,
        limits: gatewayLimits.limits,
        prices,
        callLog,
        budget,
        guardrails,
        judges,
        tracing,
        alertFeed: parts.alertFeed,
        payloadBytes: keys.logs.maxBodyBytes,
        connectTimeoutMs: keys.connectTimeoutMs,
        stallTimeoutMs: keys.stallTimeoutMs,
        ...keys.realtime,
      });
    },
    longBodies,
    bodyLimits: {
      // A body that would take more than a quarter of the memory for bodies is streamed instead.
      keepBytes: Math.min(keys.replayBodyBytes, Math.floor(keys.maxBufferedBytes / 4)),
      maxBytes: keys.maxBodyBytes,
    },
    memory: budget,
    places: parts.places,
    runner,
  });
  return { door, runner, jobs, gatewayLimits, circuits, longBodies };
}

function createClient({ file }: Config): UpstreamClient {
  const { connectTimeoutMs, firstByteTimeoutMs, stallTimeoutMs, upstreamIdleTimeoutMs } = file.gateway;
  return new UpstreamClient({
    connectTimeoutMs,
    firstByteTimeoutMs,
    stallTimeoutMs,
    idleTimeoutMs: upstreamIdleTimeoutMs,
  });
}

function toRef(gateway: Gateway): GatewayRef {
  return { accountId: gateway.accountId, gatewayId: gateway.id };
}

function quotaOf({ settings }: Gateway): CallQuota | null {
  if (settings.log_management === null) return null;
  return {
    maxRows: settings.log_management,
    whenFull: settings.log_management_strategy === "STOP_INSERTING" ? "stop" : "deleteOldest",
  };
}

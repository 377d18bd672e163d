/** The gateway area: composes the data plane, its settings and its management routes. */
import type { Registry } from "prom-client";
import type { Accounts, Authenticator, Tokens } from "../accounts/index.ts";
import type { AreaModule } from "../area-module.ts";
import type { Config } from "../config/index.ts";
import type { Clock } from "../core/clock.ts";
import type { CallLog } from "../storage/ports/call-log.ts";
import type { Database } from "../storage/ports/database.ts";
import type { ResourceEvents } from "../storage/ports/resource-events.ts";
import { CallRunner } from "./call/call-runner.ts";
import { GatewayDoor } from "./call/gateway-door.ts";
import { GatewayMetrics } from "./metrics.ts";
import { ProviderDirectory } from "./providers/provider-directory.ts";
import { DEFAULT_GATEWAY } from "./settings/gateway.ts";
import { Gateways } from "./settings/gateways.ts";
import { gatewayRoutes } from "./settings/routes.ts";
import { UpstreamClient } from "./upstream/upstream-client.ts";
import { createUsageTap } from "./usage/create-usage-tap.ts";
import { PriceTable } from "./usage/price-table.ts";

export interface GatewayParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly database: Database;
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly authenticator: Authenticator;
  readonly resourceEvents: ResourceEvents;
  readonly registry: Registry;
  readonly callLog: Pick<CallLog, "record" | "hasRoom" | "whenRoom" | "dropGateway">;
}

const DEFAULT_ACCOUNT = "default";

export function createGatewayArea(parts: GatewayParts): AreaModule {
  const { config, clock, callLog } = parts;
  const keys = config.file.gateway;
  const metrics = new GatewayMetrics(parts.registry);
  const gateways = new Gateways(parts.database, clock);
  const providers = new ProviderDirectory(config.file.providers, () => undefined);
  const prices = new PriceTable(keys.prices, clock);
  const client = new UpstreamClient({
    connectTimeoutMs: keys.connectTimeoutMs,
    firstByteTimeoutMs: keys.firstByteTimeoutMs,
    stallTimeoutMs: keys.stallTimeoutMs,
    idleTimeoutMs: keys.upstreamIdleTimeoutMs,
  });
  const runner = new CallRunner(
    {
      client,
      sink: callLog,
      metrics,
      createTap: createUsageTap,
      costOf: (provider, model, usage) => prices.costOf(provider, model, usage),
      payloadBytes: keys.logs.maxBodyBytes,
    },
    clock,
  );
  const door = new GatewayDoor({
    gateways,
    providers,
    authenticator: parts.authenticator,
    metrics,
    bodyLimits: { replayBytes: keys.replayBodyBytes, maxBytes: keys.maxBodyBytes },
    runner,
  });
  return {
    mounts: [door],
    routes: gatewayRoutes({
      gateways,
      providers,
      tokens: parts.tokens,
      resourceEvents: parts.resourceEvents,
      tags: undefined,
      dropCalls: (accountId, gatewayId) => callLog.dropGateway({ accountId, gatewayId }),
    }),
    start: () => gateways.load(DEFAULT_ACCOUNT),
    async stop() {
      client.close();
    },
    firstCommands: (url) => [
      {
        title: "Call the built-in echo provider through the gateway",
        command: `curl -s ${url}/v1/${DEFAULT_ACCOUNT}/${DEFAULT_GATEWAY}/echo/chat/completions -H 'content-type: application/json' -d '{"model":"echo","messages":[{"role":"user","content":"Hello"}]}'`,
      },
    ],
  };
}

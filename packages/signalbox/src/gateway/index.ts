/** The gateway area: composes the data plane, its settings and its management routes. */
import type { Registry } from "prom-client";
import type { Accounts, Authenticator, Tokens } from "../accounts/index.ts";
import type { AreaModule } from "../area-module.ts";
import type { Config } from "../config/index.ts";
import type { Clock } from "../core/clock.ts";
import type { CallSink } from "../storage/ports/call-log.ts";
import type { Database } from "../storage/ports/database.ts";
import type { ResourceEvents } from "../storage/ports/resource-events.ts";
import { CallRunner } from "./call/call-runner.ts";
import { GatewayDoor } from "./call/gateway-door.ts";
import { GatewayMetrics } from "./metrics.ts";
import { ProviderDirectory } from "./providers/provider-directory.ts";
import { Gateways } from "./settings/gateways.ts";
import { gatewayRoutes } from "./settings/routes.ts";
import { UpstreamClient } from "./upstream/upstream-client.ts";

export interface GatewayParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly database: Database;
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly authenticator: Authenticator;
  readonly resourceEvents: ResourceEvents;
  readonly registry: Registry;
}

const DEFAULT_ACCOUNT = "default";

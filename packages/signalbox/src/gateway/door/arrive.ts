/** What every call does first: it finds its gateway, is identified by its token, and takes a place among the calls under way. */
import { SignalboxError } from "@signalbox/protocol";
import type { Authenticator } from "../../accounts/index.ts";
import { overloaded } from "../../core/overload.ts";
import type { SharedPlaces } from "../../core/shared-pool.ts";
import type { HttpRequest, MemoryBudget } from "../../engines/http-server/index.ts";
import type { Arrival } from "../call/call-start.ts";
import { holderOf, identifyCaller } from "../keys/caller-token.ts";
import { DEFAULT_GATEWAY, type Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import { KNOWN_PATHS } from "./door-path.ts";

export interface ArrivalParts {
  readonly gateways: Gateways;
  readonly authenticator: Authenticator;
  readonly memory: MemoryBudget;
  /** Of calls under way, and of other requests. */
  readonly places: SharedPlaces;
}

/** One request, as the listener passes it on. */
export type Incoming = Pick<Arrival, "request" | "response" | "context" | "startedAt">;

interface GatewayName {
  readonly accountId: string;
  /** Null when a header names the gateway. */
  readonly gatewayId: string | null;
}

/** `mayExplain`: the error for a caller without a valid token may name the remedy. */
export function arrive(
  { gateways, authenticator, memory, places }: ArrivalParts,
  name: GatewayName,
  { request, response, context, startedAt }: Incoming,
  mayExplain = false,
): Arrival {
  const gateway = findGateway(gateways, name, request);
  const caller = identifyCaller(authenticator, gateway, request, context.query, mayExplain);
  const holder = holderOf(caller, gateway);
  if (!context.memory.occupy(places.shareOf(holder))) throw overloaded();
  return { request, response, context, gateway, caller, memory: memory.shareOf(holder), startedAt };
}

/** Throws `method_not_allowed`. */
export function requireMethod({ method = "GET" }: HttpRequest, ...allowed: readonly string[]): void {
  if (!allowed.includes(method)) {
    throw new SignalboxError("method_not_allowed", { headers: { allow: allowed.join(", ") } });
  }
}

export function findGateway(
  gateways: Gateways,
  { accountId, gatewayId }: GatewayName,
  { headers }: HttpRequest,
): Gateway {
  const named = gatewayId ?? headers["gw-aig-gateway-id"] ?? headers["cf-aig-gateway-id"];
  const gateway = gateways.find(accountId, typeof named === "string" ? named : DEFAULT_GATEWAY);
  if (gateway !== undefined) return gateway;
  const isNamed = gatewayId === null;
  throw new SignalboxError("gateway_not_found", {
    message: isNamed ? "Gateway not found" : `Gateway not found. ${KNOWN_PATHS}`,
  });
}

/** What changes when other machines reach the service: who may read what concerns all accounts, and what the operator is told at the start. */
import { SignalboxError } from "@signalbox/protocol";
import { boundGateway, isAllowed, type Principal } from "../accounts/index.ts";
import type { Config } from "../config/index.ts";
import type { GatewayArea } from "../gateway/index.ts";

const OPERATORS_ACCOUNT = "default";

/**
 * Metrics tell of all accounts, so beside the root token only an unbound token of the operator's account with `gateway.read` gets them; the
 * description of the interface is for every valid token.
 */
export function requireOperator(principal: Principal | null, what: "metrics" | "description"): void {
  if (principal === null) throw new SignalboxError("unauthenticated");
  if (what === "description" || principal.kind === "root") return;
  if (!isAllowed(principal, OPERATORS_ACCOUNT, "gateway.read") || boundGateway(principal) !== null)
    throw new SignalboxError("forbidden");
}

export function exposureWarnings(config: Config, gateway: GatewayArea): string[] {
  const open = gateway
    .withoutAuthentication()
    .map(
      ({ accountId, gatewayId }) =>
        `gateway ${accountId}/${gatewayId} has authentication off: whoever reaches ${config.host} can make calls through it; set "authentication": true in its settings`,
    );
  if (config.file.agents.access !== "public") return open;
  return [...open, `agents.access is "public": whoever reaches ${config.host} can call every agent`];
}

/** Rules for a service that other machines can reach: access to data of all accounts, and warnings at the start. */
import { SignalboxError } from "@signalbox/protocol";
import { boundGateway, isAllowed, type Principal } from "../accounts/index.ts";
import type { Config } from "../config/index.ts";
import type { HttpRequest } from "../engines/http-server/index.ts";
import { type ClientAddress, isLoopbackAddress } from "../engines/ip-address/index.ts";
import type { GatewayArea } from "../gateway/index.ts";

const OPERATOR_ACCOUNT = "default";

/**
 * Metrics include data of all accounts: only the root token and unbound tokens of the account `default` with `gateway.read` may read them. Every
 * valid token may read the OpenAPI description.
 */
export function requireOperator(principal: Principal | null, what: "metrics" | "description"): void {
  if (principal === null) throw new SignalboxError("unauthenticated");
  if (what === "description" || principal.kind === "root") return;
  if (!isAllowed(principal, OPERATOR_ACCOUNT, "gateway.read") || boundGateway(principal) !== null)
    throw new SignalboxError("forbidden");
}

/** Headers that a proxy adds. A client that forges one on this machine only needs a token then. */
const PROXY_HEADERS = ["x-forwarded-for", "forwarded", "x-real-ip", "via"] as const;

/**
 * True for a request of a program on this machine. A proxy on the same machine makes a loopback address reachable for others: what it has
 * forwarded is local only if the proxy is a trusted one and names a local client. A trusted proxy that names no client, or not by its address,
 * would itself count as the client.
 */
export function isLocalRequest(request: HttpRequest, clientAddress: ClientAddress): boolean {
  const isForwarded = PROXY_HEADERS.some((name) => request.headers[name] !== undefined);
  if (isForwarded && !clientAddress.trusts(request.socket.remoteAddress)) return false;
  if (isForwarded && !clientAddress.isNamed(request)) return false;
  const address = clientAddress.ofRequest(request);
  return address !== undefined && isLoopbackAddress(address);
}

export function exposureWarnings(config: Config, gateway: GatewayArea): string[] {
  const open = gateway
    .withoutAuthentication()
    .map(
      ({ accountId, gatewayId }) =>
        `gateway ${accountId}/${gatewayId} has authentication off: every client that reaches ${config.host} can use it; set "authentication": true in its settings`,
    );
  const { access } = config.file.agents;
  if (access === "public")
    return [
      ...open,
      `agents.access is "public": every client that reaches ${config.host} can call every agent`,
    ];
  if (access !== "worker") return open;
  return [
    ...open,
    `agents.access is "worker": every client that reaches ${config.host} can call the worker, which decides itself what to allow`,
    ...(config.admin === null
      ? [
          "pages of the worker have the origin of the dashboard, and their scripts can use its session: give the dashboard another address with --admin-port",
        ]
      : []),
  ];
}

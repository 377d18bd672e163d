/**
 * Decides from the headers alone whether a call may use a gateway that requires a token. Whatever is wrong with the token, the
 * answer is the same: nobody learns whether it exists, has expired, or belongs to another gateway.
 */
import type { HttpRequest } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { type Authenticator, bearerText, isAllowed } from "../../accounts/index.ts";
import type { Gateway } from "../settings/gateway.ts";

/** The id of the token that lets the call in, `root` for the root token; throws `gateway_unauthorized`. */
export function authorise(authenticator: Authenticator, gateway: Gateway, { headers }: HttpRequest): string {
  const header = headers["gw-aig-authorization"] ?? headers["cf-aig-authorization"];
  const text = typeof header === "string" ? bearerText(header) : null;
  const principal = text === null ? null : authenticator.fromText(text);
  if (principal === null || !isAllowed(principal, gateway.accountId, "gateway.run")) {
    throw new SignalboxError("gateway_unauthorized");
  }
  if (principal.kind === "root") return "root";
  const { gatewayId, id } = principal.token;
  if (gatewayId !== null && gatewayId !== gateway.id) throw new SignalboxError("gateway_unauthorized");
  return id;
}

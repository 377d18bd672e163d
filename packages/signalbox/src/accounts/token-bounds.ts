/**
 * How far a token reaches, compared with another one: nobody hands out more than they hold, or takes away more than they could have handed out.
 *
 * 1. A new token has no permission its maker lacks, no later end, and no other gateway than the one its maker is bound to. The absence of an end
 *    or of a gateway is the widest value there is, so a bounded maker has to name its bound; it is not filled in silently.
 * 2. A token that is bound to a gateway holds permissions that a gateway can bound, and no others.
 * 3. A token is listed, read and revoked by a bound token only when it is bound to the same gateway and holds no permission the other lacks.
 *    An unbound token may list and read all of its account's, and revokes those that hold no permission it lacks. Ends do not count here.
 */
import { type Permission, SignalboxError } from "@signalbox/protocol";
import type { Principal } from "./principal.ts";
import type { Token } from "./token.ts";

/** True when the permission can be limited to one gateway. */
export function isBindable(permission: Permission): boolean {
  return permission.startsWith("gateway.") || permission === "tokens.edit";
}

export interface TokenReach {
  readonly accountId: string;
  readonly permissions: Iterable<Permission>;
  readonly gatewayId: string | null;
  readonly expiresAt: number | null;
}

/** Throws when the maker may not hand out a token like this one, or nobody could. */
export function requireWithinBounds(maker: Principal, wanted: TokenReach): void {
  if (maker.kind === "token") requireWithin(maker.token, wanted);
  if (wanted.gatewayId === null) return;
  const unbound = [...wanted.permissions].find((permission) => !isBindable(permission));
  if (unbound !== undefined) {
    throw new SignalboxError("invalid_request", {
      message: `gateway_id: a token of one gateway can hold gateway.run, gateway.read, gateway.edit and tokens.edit, not ${unbound}`,
    });
  }
}

function requireWithin(maker: Token, wanted: TokenReach): void {
  if (maker.accountId !== wanted.accountId) throw new SignalboxError("forbidden");
  const missing = [...wanted.permissions].find((permission) => !maker.permissions.has(permission));
  if (missing !== undefined) throw denied(`you do not hold ${missing}`);
  if (maker.gatewayId !== null && maker.gatewayId !== wanted.gatewayId) {
    throw denied(`your token is bound to a gateway, gateway_id must be ${JSON.stringify(maker.gatewayId)}`);
  }
  if (maker.expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > maker.expiresAt)) {
    throw denied(
      `your token ends, expires_at must be given and at most ${new Date(maker.expiresAt).toISOString()}`,
    );
  }
}

/** Whether the principal may see that the token exists. */
export function maySee(principal: Principal, token: Token): boolean {
  return principal.kind === "root" || principal.token.gatewayId === null || isWithin(token, principal.token);
}

/** Whether the principal may revoke the token; every token may revoke itself. */
export function mayRevoke(principal: Principal, token: Token): boolean {
  return principal.kind === "root" || isWithin(token, principal.token);
}

function isWithin(token: Token, other: Token): boolean {
  if (token.id === other.id) return true;
  if (other.gatewayId !== null && token.gatewayId !== other.gatewayId) return false;
  return [...token.permissions].every((permission) => other.permissions.has(permission));
}

function denied(why: string): SignalboxError {
  return new SignalboxError("forbidden", { message: `Permission denied: ${why}` });
}

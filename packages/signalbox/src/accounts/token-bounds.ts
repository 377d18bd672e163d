/**
 * Which tokens a token may create, see and revoke.
 *
 * Invariants:
 * 1. A new token has no permission that its maker lacks, does not expire later, and is bound to the gateway that its maker is bound to. A missing
 *    expiry or gateway is the widest value, so a bounded maker must name its bound; a default is never filled in.
 * 2. A token that is bound to a gateway has only permissions that apply to gateways.
 * 3. A bound token lists, reads and revokes a token only if that token is bound to the same gateway and has no permission that it lacks. An
 *    unbound token lists and reads all tokens of its account, and revokes those without a permission that it lacks. Expiry does not matter.
 */
import { type Permission, SignalboxError } from "@signalbox/protocol";
import { isBindable, type Principal } from "./principal.ts";
import type { Token } from "./token.ts";

export interface TokenReach {
  readonly accountId: string;
  readonly permissions: Iterable<Permission>;
  readonly gatewayId: string | null;
  readonly expiresAt: number | null;
}

/** Throws when the maker may not create such a token, or the token is not possible at all. */
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

/** True when the principal may list and read the token. */
export function maySee(principal: Principal, token: Token): boolean {
  return principal.kind === "root" || principal.token.gatewayId === null || isWithin(token, principal.token);
}

/** True when the principal may revoke the token; every token may revoke itself. */
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

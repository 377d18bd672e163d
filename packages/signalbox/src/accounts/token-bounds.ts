/**
 * Which tokens a token may create, see and revoke.
 *
 * Invariants:
 * 1. A new token has no permission that its creator lacks, does not expire later, and is bound to the gateway of its creator, if the creator is
 *    bound. A missing expiry or gateway means no limit, so a limited creator must specify it; no default is added.
 * 2. A token that is bound to a gateway has only permissions that apply to gateways.
 * 3. A bound token lists, reads and revokes a token only if that token is bound to the same gateway and has no additional permission. An
 *    unbound token lists and reads all tokens of its account, and revokes those without an additional permission. Expiry is ignored.
 * See docs/decisions/0087.
 */
import { type Permission, SignalboxError } from "@signalbox/protocol";
import { isBindable, type Principal } from "./principal.ts";
import type { Token } from "./token.ts";

/** The limits of a token. */
export interface TokenLimits {
  readonly accountId: string;
  readonly permissions: Iterable<Permission>;
  readonly gatewayId: string | null;
  readonly expiresAt: number | null;
}

/** Throws if the creator may not create such a token, or if no token can have these limits. */
export function requireWithinBounds(creator: Principal, wanted: TokenLimits): void {
  if (creator.kind === "token") requireWithin(creator.token, wanted);
  if (wanted.gatewayId === null) return;
  const unbound = [...wanted.permissions].find((permission) => !isBindable(permission));
  if (unbound !== undefined) {
    throw new SignalboxError("invalid_request", {
      message: `gateway_id: a token of one gateway can have gateway.run, gateway.read, gateway.edit and tokens.edit, not ${unbound}`,
    });
  }
}

function requireWithin(creator: Token, wanted: TokenLimits): void {
  if (creator.accountId !== wanted.accountId) throw new SignalboxError("forbidden");
  const missing = [...wanted.permissions].find((permission) => !creator.permissions.has(permission));
  if (missing !== undefined) throw denied(`your token does not have ${missing}`);
  if (creator.gatewayId !== null && creator.gatewayId !== wanted.gatewayId) {
    throw denied(`your token is bound to a gateway; gateway_id must be ${JSON.stringify(creator.gatewayId)}`);
  }
  if (creator.expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > creator.expiresAt)) {
    throw denied(
      `your token expires; expires_at must be at most ${new Date(creator.expiresAt).toISOString()}`,
    );
  }
}

/** Returns true if the principal may list and read the token. */
export function maySee(principal: Principal, token: Token): boolean {
  return principal.kind === "root" || principal.token.gatewayId === null || isWithin(token, principal.token);
}

/** Returns true if the principal may revoke the token. Every token may revoke itself. */
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

/**
 * Which tokens a token may create, change, see and revoke.
 *
 * Invariants:
 * 1. A new token has no permission that its creator lacks, does not expire later, and is bound to the gateway of its creator, if the creator is
 *    bound. A missing expiry or gateway means no limit, so a limited creator must specify it; no default is added.
 * 2. A token that is bound to a gateway has only permissions that apply to gateways.
 * 3. A bound token lists, reads and revokes a token only if that token is bound to the same gateway and has no additional permission. An
 *    unbound token lists and reads all tokens of its account, and revokes those without an additional permission. Expiry is ignored.
 * 4. A new token may call no model, provider or kind of route that its creator may not, and carries the metadata, the owner and the tags of its
 *    creator, because rules of the gateway are bound to them.
 * 5. A creator with budgets or rate limits creates no token that can run calls: each new token would have its own amounts, and their sum has no
 *    limit. The same holds for a change and for the rotation of another token, which returns its secret.
 * See docs/decisions/0087 and docs/decisions/0116.
 */
import { type Permission, SignalboxError } from "@signalbox/protocol";
import { AllowRules } from "./allow-rules.ts";
import { isBindable, type Principal } from "./principal.ts";
import type { Token } from "./token.ts";
import { NO_POLICY, type TokenPolicy } from "./token-policy.ts";

/** The limits of a token. */
export interface TokenLimits {
  readonly accountId: string;
  readonly permissions: Iterable<Permission>;
  readonly gatewayId: string | null;
  readonly expiresAt: number | null;
  readonly policy: TokenPolicy | null;
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
  if (creator.policy !== null && [...wanted.permissions].includes("gateway.run")) {
    requirePolicyWithin(creator.policy, wanted.policy ?? NO_POLICY);
  }
}

function requirePolicyWithin(own: TokenPolicy, wanted: TokenPolicy): void {
  if (own.budgets.length > 0 || own.rateLimits.length > 0) {
    throw denied("your token has budgets or rate limits, so it cannot give gateway.run to another token");
  }
  if (!AllowRules.ofModels(own.models).covers(AllowRules.ofModels(wanted.models))) {
    throw denied(`models must be within those of your token: ${own.models.join(", ")}`);
  }
  if (!AllowRules.ofProviders(own.providers).covers(AllowRules.ofProviders(wanted.providers))) {
    throw denied(`providers must be within those of your token: ${own.providers.join(", ")}`);
  }
  if (own.routes.length > 0 && !isPart(wanted.routes, own.routes)) {
    throw denied(`routes must be within those of your token: ${own.routes.join(", ")}`);
  }
  if (own.owner !== null && wanted.owner !== own.owner) {
    throw denied(`owner must be that of your token: ${own.owner}`);
  }
  const kept = new Set(wanted.guardrails.map((rule) => JSON.stringify(rule)));
  const missing = own.guardrails.find((rule) => !kept.has(JSON.stringify(rule)));
  if (missing !== undefined) throw denied(`guardrails must contain those of your token: ${missing.id}`);
  requireSame("metadata", own.metadata, wanted.metadata);
  requireSame("tags", own.tags, wanted.tags);
}

function isPart<T>(wanted: readonly T[], own: readonly T[]): boolean {
  return wanted.length > 0 && wanted.every((item) => own.includes(item));
}

function requireSame(
  name: string,
  own: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, unknown>>,
): void {
  for (const [key, value] of Object.entries(own)) {
    if (!Object.hasOwn(wanted, key) || wanted[key] !== value) {
      throw denied(`${name}.${key} must be that of your token: ${JSON.stringify(value)}`);
    }
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

/** Returns true if the principal may have the secret of the token: its own, or one that it could have created. */
export function mayRotate(principal: Principal, token: Token): boolean {
  if (principal.kind === "token" && principal.token.id === token.id) return true;
  try {
    requireWithinBounds(principal, token);
    return true;
  } catch (error) {
    if (error instanceof SignalboxError) return false;
    throw error;
  }
}

function isWithin(token: Token, other: Token): boolean {
  if (token.id === other.id) return true;
  if (other.gatewayId !== null && token.gatewayId !== other.gatewayId) return false;
  return [...token.permissions].every((permission) => other.permissions.has(permission));
}

function denied(why: string): SignalboxError {
  return new SignalboxError("forbidden", { message: `Permission denied: ${why}` });
}

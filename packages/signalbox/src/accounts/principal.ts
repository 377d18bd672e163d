/** The authenticated caller and its permissions. */
import type { Permission } from "@signalbox/protocol";
import type { Token } from "./token.ts";

export type Principal = ({ readonly kind: "root" } | { readonly kind: "token"; readonly token: Token }) & {
  /** Set if the caller uses a dashboard session: connections that it opens end with the session. */
  readonly session?: SessionRef;
};

export interface SessionRef {
  /** SHA-256 of the cookie's value. */
  readonly hash: string;
  readonly expiresAt: number;
}

export const ROOT: Principal = { kind: "root" };

/**
 * Returns true if the principal has the permission in the account. A token has no permission in other accounts. A token that is bound to a
 * gateway has only permissions that apply to gateways, and the caller must check the gateway.
 */
export function isAllowed(principal: Principal, accountId: string, permission: Permission): boolean {
  if (principal.kind === "root") return true;
  const { token } = principal;
  if (token.accountId !== accountId || !token.permissions.has(permission)) return false;
  return token.gatewayId === null || isBindable(permission);
}

/**
 * Returns true for the root token itself. A session of it does the same work, but must not obtain what outlives it: another session, or the
 * token.
 */
export function isRootToken({ kind, session }: Principal): boolean {
  return kind === "root" && session === undefined;
}

/** Returns true if the permission can be limited to one gateway. */
export function isBindable(permission: Permission): boolean {
  return permission.startsWith("gateway.") || permission === "tokens.edit";
}

/** Returns the gateway that the principal is bound to; null if it is not bound. */
export function boundGateway(principal: Principal): string | null {
  return principal.kind === "root" ? null : principal.token.gatewayId;
}

/** Returns the name for audit logs; it contains no credential. */
export function principalName(principal: Principal): string {
  return principal.kind === "root" ? "root" : `token:${principal.token.id}`;
}

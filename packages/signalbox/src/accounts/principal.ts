/** The authenticated caller and its permissions. */
import type { Permission } from "@signalbox/protocol";
import type { Token } from "./token.ts";

export type Principal = ({ readonly kind: "root" } | { readonly kind: "token"; readonly token: Token }) & {
  /** Set when the caller used a dashboard session: connections that it opened end with the session, too. */
  readonly session?: SessionRef;
};

export interface SessionRef {
  /** SHA-256 of the cookie's value. */
  readonly hash: string;
  readonly expiresAt: number;
}

export const ROOT: Principal = { kind: "root" };

/**
 * True when the principal has the permission in the account. A token has none in other accounts; a token that is bound to a gateway has only
 * permissions that apply to gateways, and the caller must check which gateway.
 */
export function isAllowed(principal: Principal, accountId: string, permission: Permission): boolean {
  if (principal.kind === "root") return true;
  const { token } = principal;
  if (token.accountId !== accountId || !token.permissions.has(permission)) return false;
  return token.gatewayId === null || isBindable(permission);
}

/** True when the permission can be limited to one gateway. */
export function isBindable(permission: Permission): boolean {
  return permission.startsWith("gateway.") || permission === "tokens.edit";
}

/** The gateway that the principal is bound to; null when it is not bound. */
export function boundGateway(principal: Principal): string | null {
  return principal.kind === "root" ? null : principal.token.gatewayId;
}

/** Name for audit logs; never a credential. */
export function principalName(principal: Principal): string {
  return principal.kind === "root" ? "root" : `token:${principal.token.id}`;
}

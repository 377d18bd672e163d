/** Who is asking, once the credential has been checked, and what that lets them do. */
import type { Permission } from "@signalbox/protocol";
import type { Token } from "./token.ts";
import { isBindable } from "./token-bounds.ts";

export type Principal = ({ readonly kind: "root" } | { readonly kind: "token"; readonly token: Token }) & {
  /** Set when a dashboard session stands for the credential: what it opens ends with the session, too. */
  readonly session?: SessionRef;
};

export interface SessionRef {
  /** SHA-256 of the cookie's value. */
  readonly hash: string;
  readonly expiresAt: number;
}

export const ROOT: Principal = { kind: "root" };

/**
 * True when the principal may use `permission` in the account; a token never reaches another account, and one that is bound to a gateway has no
 * permission that a gateway cannot bound. Which gateway it is remains to be checked where one is named.
 */
export function isAllowed(principal: Principal, accountId: string, permission: Permission): boolean {
  if (principal.kind === "root") return true;
  const { token } = principal;
  if (token.accountId !== accountId || !token.permissions.has(permission)) return false;
  return token.gatewayId === null || isBindable(permission);
}

/** The gateway that bounds the principal; null when none does. */
export function boundGateway(principal: Principal): string | null {
  return principal.kind === "root" ? null : principal.token.gatewayId;
}

/** Name for audit trails: never a credential. */
export function principalName(principal: Principal): string {
  return principal.kind === "root" ? "root" : `token:${principal.token.id}`;
}

/** Who is asking, once the credential has been checked, and what that lets them do. */
import type { Permission } from "@signalbox/protocol";
import type { Token } from "./token.ts";

export type Principal = { readonly kind: "root" } | { readonly kind: "token"; readonly token: Token };

export const ROOT: Principal = { kind: "root" };

/** True when the principal may use `permission` in the account; a token never reaches another account. */
export function isAllowed(principal: Principal, accountId: string, permission: Permission): boolean {
  if (principal.kind === "root") return true;
  return principal.token.accountId === accountId && principal.token.permissions.has(permission);
}

/** Name for audit trails: never a credential. */
export function principalName(principal: Principal): string {
  return principal.kind === "root" ? "root" : `token:${principal.token.id}`;
}

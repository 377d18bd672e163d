/**
 * Decides which account may use which environment variable of the service as a provider key. The operator grants variables in the
 * configuration (`gateway.providerKeys`); entries that tenants store can only select among granted ones.
 *
 * The decision does not depend on whether a variable exists, so an account learns nothing about variables of others.
 * See docs/decisions/0118.
 */
import { CUSTOM_PREFIX } from "../providers/provider.ts";

export type KeyGrants = Readonly<
  Record<string, readonly string[] | { readonly accounts: readonly string[]; readonly origin: string }>
>;

export interface KeyUse {
  readonly accountId: string;
  readonly providerSlug: string;
  readonly envName: string;
}

const DEFAULT_ACCOUNTS = ["default"];
const EVERY_ACCOUNT = "*";

/** Where a key may be sent. */
export type KeyReach = { readonly to: "anywhere" } | { readonly to: "origin"; readonly origin: string };

/**
 * Null when the account may not use the variable. The key of a custom provider is bound to an origin, because the tenant can change the
 * provider's address; the operator controls the addresses of all other providers.
 */
export function grantedReach(grants: KeyGrants, use: KeyUse): KeyReach | null {
  const grant = Object.hasOwn(grants, use.envName) ? grants[use.envName] : undefined;
  const isBound = grant !== undefined && "origin" in grant;
  const accounts = isBound ? grant.accounts : (grant ?? DEFAULT_ACCOUNTS);
  if (!accounts.includes(use.accountId) && !accounts.includes(EVERY_ACCOUNT)) return null;
  if (!use.providerSlug.startsWith(CUSTOM_PREFIX)) return { to: "anywhere" };
  return isBound ? { to: "origin", origin: new URL(grant.origin).origin } : null;
}

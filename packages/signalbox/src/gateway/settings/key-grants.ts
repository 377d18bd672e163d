/**
 * Which account may use which variable of the service's environment as a provider key. The operator says so in the configuration
 * (`gateway.providerKeys`); what tenants store in the database only chooses among what they were given.
 *
 * Whether a variable exists plays no part here: an account learns nothing about variables that are not its own.
 */
import { CUSTOM_PREFIX } from "../providers/provider-directory.ts";

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
 * Null when the account may not use the variable. The key of a custom provider is bound to an origin, because that provider's address is
 * the tenant's to change; other providers' addresses are the operator's or ours.
 */
export function grantedReach(grants: KeyGrants, use: KeyUse): KeyReach | null {
  const grant = Object.hasOwn(grants, use.envName) ? grants[use.envName] : undefined;
  const isBound = grant !== undefined && "origin" in grant;
  const accounts = isBound ? grant.accounts : (grant ?? DEFAULT_ACCOUNTS);
  if (!accounts.includes(use.accountId) && !accounts.includes(EVERY_ACCOUNT)) return null;
  if (!use.providerSlug.startsWith(CUSTOM_PREFIX)) return { to: "anywhere" };
  return isBound ? { to: "origin", origin: new URL(grant.origin).origin } : null;
}

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

/**
 * Null when the account may not use the variable. Else the origin it may be sent to, for a custom provider: its address is the tenant's
 * to change, so the operator's key is bound to one. `anywhere` for providers whose address is the operator's or ours.
 */
export function grantedOrigin(grants: KeyGrants, use: KeyUse): string | "anywhere" | null {
  const grant = Object.hasOwn(grants, use.envName) ? grants[use.envName] : undefined;
  const isBound = grant !== undefined && "origin" in grant;
  const accounts = isBound ? grant.accounts : (grant ?? DEFAULT_ACCOUNTS);
  if (!accounts.includes(use.accountId) && !accounts.includes(EVERY_ACCOUNT)) return null;
  if (!use.providerSlug.startsWith(CUSTOM_PREFIX)) return "anywhere";
  return isBound ? new URL(grant.origin).origin : null;
}

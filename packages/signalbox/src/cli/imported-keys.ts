/** Provider keys of other gateways: what creates one, and how it is recognised when the import is repeated. */
import type { ProviderKey } from "@signalbox/client";

export interface ImportedKey {
  readonly provider_slug: string;
  /** Where the service finds the key; undefined for a key that the file contains. */
  readonly secret_id?: string | undefined;
  readonly secret?: string | undefined;
  readonly rate_limit?: number | undefined;
  readonly rate_limit_period?: number | undefined;
}

/** The interface shows the name of a variable without its scheme, and of a stored key the last four characters. */
export function isSameKey(
  one: ProviderKey,
  { provider_slug: provider, secret, secret_id: id }: ImportedKey,
): boolean {
  if (one.provider_slug !== provider) return false;
  return secret === undefined
    ? `env:${one.secret_id}` === id
    : one.secret_preview !== "" && secret.endsWith(one.secret_preview.replace("…", ""));
}

/** Without the key. */
export function keyTitle({ provider_slug: provider, secret_id: id }: ImportedKey): string {
  return `key of ${provider} ${id === undefined ? "(from the file, stored encrypted)" : `(${id})`}`;
}

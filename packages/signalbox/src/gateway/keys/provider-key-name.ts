/** Whether a variable has the name of a provider's key: of a built-in one, or of one in `slugs`. */
import { BUILT_IN_PROVIDERS } from "../providers/built-in.ts";
import { envPrefix, isOf } from "./key-source.ts";

const BUILT_IN = BUILT_IN_PROVIDERS.map(({ slug }) => envPrefix(slug));

export function isProviderKeyName(name: string, slugs: readonly string[]): boolean {
  return BUILT_IN.some((prefix) => isOf(prefix, name)) || slugs.some((slug) => isOf(envPrefix(slug), name));
}

/** Opens the shared engine, which is loaded on demand: most installations have no PostgreSQL. */
import type { SharedInstanceStore } from "./shared/ownership.ts";
import type { SharedStoreOptions } from "./shared/shared-store.ts";

export async function openSharedStore(options: SharedStoreOptions): Promise<SharedInstanceStore> {
  const { SharedStore } = await import("./shared/shared-store.ts");
  return SharedStore.open(options);
}

/**
 * Opens the store with one of its two engines. Both keep each instance in the same plain SQLite file, so that either opens what the other one wrote.
 * WAL files that a crashed process left are the only difference, and they are resolved here before the engine starts:
 *
 * - after a crash of the journal engine, WAL files are worthless: the journal is replayed into the databases and the WAL files are removed;
 * - after a crash of the plain engine, WAL files hold commits: SQLite copies them into the databases.
 * See docs/decisions/0103.
 */
import type { InstanceStoreOptions, LocalInstanceStore } from "./instance-store.ts";
import { JournalStore } from "./journal/journal-store.ts";
import { PlainStore } from "./plain/plain-store.ts";

/** `journal`: one journal and one sync for the commits of all instances. `plain`: each instance syncs its own WAL. */
export type InstanceStoreEngine = "journal" | "plain";

export async function openInstanceStore(
  engine: InstanceStoreEngine,
  options: InstanceStoreOptions,
): Promise<LocalInstanceStore> {
  PlainStore.recover(options);
  if (engine === "journal") return new JournalStore(options);
  await JournalStore.recover(options);
  return new PlainStore(options);
}

/** Which tables of a database are Signalbox's own: a schema may have tables of other programs, which no backup of Signalbox contains. */
import { tablesOfMigrations } from "../migrate.ts";

/** Tables of nodes, of the call log and of shared instances, which no migration creates. */
const OTHERS =
  /^(?:schema_(?:migrations|compatibility)|signalbox_\w+|call_log(?:_\w+)?|agent_(?:store|store_number|owner|log|part|template))$/;

export function ownTables(): (name: string) => boolean {
  const migrated = tablesOfMigrations();
  return (name) => migrated.has(name) || OTHERS.test(name);
}

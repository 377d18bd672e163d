export { InstanceFiles } from "./journal/journal-store.ts";
export {
  type InstanceDatabase,
  type InstanceRef,
  type InstanceStore,
  type QueryResult,
  SqlError,
} from "./instance-store.ts";

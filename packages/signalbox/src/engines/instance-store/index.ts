export { InstanceFiles } from "./instance-files.ts";
export {
  type InstanceDatabase,
  type InstanceRef,
  type InstanceStore,
  type QueryResult,
  SqlError,
} from "./instance-store.ts";

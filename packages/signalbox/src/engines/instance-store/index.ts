export {
  type BaseSchema,
  type InstanceDatabase,
  type InstanceStore,
  type QueryResult,
  SqlError,
} from "./instance-store.ts";
export { type InstanceStoreEngine, openInstanceStore } from "./open-instance-store.ts";

/**
 * A second, small api of the agents' area: what runs inside of the process of a loaded program, and what speaks with it. `index.ts` would bring the whole area into that process.
 */
export { exportKind, OBJECT } from "./objects/class-marks.ts";
export { currentWork } from "./objects/current-work.ts";
export { readFlags } from "./objects/compatibility.ts";
export { EmailMessage } from "./objects/email-module.ts";
export type { ObjectContext } from "./objects/object-context.ts";
export type { ObjectStorage } from "./objects/object-storage.ts";
export type { ListOptions } from "./objects/kv-storage.ts";
export type { ObjectClass } from "./objects/object-types.ts";
export { createStub, targetOf } from "./objects/rpc-stub.ts";
export { endingWith, reach, transferArguments, transferResult } from "./objects/rpc-values.ts";
export { fetchFollowing } from "./objects/follow-redirects.ts";
export { bindWorker } from "./objects/worker-binding.ts";
export { installWorkerGlobals } from "./objects/worker-globals.ts";
export { SqlStorageCursor } from "./objects/sql-storage.ts";
export * as workersModule from "./objects/workers-module.ts";
export {
  openProcessSession,
  type ProcessSession,
  serveProcessSession,
} from "./remote/objects/process-session.ts";

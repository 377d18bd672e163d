export { Dispatcher } from "./dispatch.ts";
export { Listener } from "./listener.ts";
export { createManagement } from "./management.ts";
export { buildOpenApi } from "./openapi.ts";
export { createOperations } from "./operations.ts";

export { callArea } from "./local-call.ts";
export type { AdmitRequest } from "./dispatch.ts";
export { type Front, openFront } from "./front.ts";
export { createManagement } from "./management.ts";
export { buildOpenApi } from "./openapi.ts";
export { createHealth, createOperations } from "./operations.ts";
export type { OwnReport, ProcessReadiness, ProcessState, Siblings } from "./siblings.ts";

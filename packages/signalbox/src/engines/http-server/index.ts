export { HeldMemory, type MemoryBudget } from "./held-memory.ts";
export { Listener, type ListenerLimits } from "./listener.ts";
export { Agent, request, STATUS_CODES } from "./node-http.ts";
export { MAX_UNANSWERED, pipelineOf } from "./pipeline.ts";
export { readBody } from "./read-body.ts";
export { type BodyReceiver, TrackedRequest } from "./tracked-request.ts";
export { type ListenerState, type TrackedResponse, Tracking } from "./tracked-response.ts";
export { toFrame } from "./websocket-frame.ts";

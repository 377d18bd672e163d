/**
 * The HTTP server engine; see README.md.
 *
 * A `Listener` runs an `HttpApplication`. Areas see requests and responses as `HttpRequest` and `HttpResponse` and read bodies with `readBody`;
 * they use no other property of Node's objects, so that another implementation can replace node:http.
 */
export { type BodyFailure, type BodyHandler, type BodyLimits, hasBody, readBody } from "./body-reader.ts";
export { sendFinalAnswer } from "./final-answer.ts";
export {
  type HttpRequest,
  type HttpResponse,
  type ServedResponse,
  toIncomingMessage,
} from "./http-exchange.ts";
export { type BoundAddress, isLoopback, urlOf } from "./listen-address.ts";
export { LocalRequest, LocalResponse } from "./local-exchange.ts";
export type { HttpApplication, ListenerEngine, ListenerLimits, ListenerRefusal } from "./application.ts";
export { Listener } from "./listener.ts";
export { MemoryBudget, type MemoryShare } from "./memory-budget.ts";
export { Agent, request, STATUS_CODES } from "./node-http.ts";
export { type AddedHeaders, HeldMemory, type Tracking } from "./tracking.ts";
export { relayStream } from "./relay-stream.ts";
export { CertificateError, ServerCertificate } from "./server-certificate.ts";
export { LocalSocket, MAX_REASON_BYTES, toFrame } from "./websocket.ts";

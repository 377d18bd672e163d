export { KeptBody } from "./kept-body.ts";
export { type Origin, toOrigin } from "./origin.ts";
export { NO_BODY, type RequestBody } from "./request-body.ts";
export { contentTypeOf, type ResponseHead } from "./response-parser.ts";
export type { UpstreamExchange, UpstreamHandler, UpstreamRequest } from "./upstream-call.ts";
export { UpstreamClient } from "./upstream-client.ts";
export type { UpstreamFailure } from "./upstream-failure.ts";
export { createUsageTap } from "./usage/create-usage-tap.ts";
export type { UsageDialect, UsageTap } from "./usage/usage-tap.ts";

/**
 * The relay engine: sends HTTP/1.1 requests upstream and hands the responses over as they arrive. `upstream.ts` describes one exchange;
 * README.md states what the engine promises.
 */
export {
  type AwsMessage,
  AwsMessageReader,
  editAwsMessage,
  readAwsPayload,
  splitAwsMessages,
  writeAwsMessage,
} from "./aws-messages.ts";
export { NO_BODY, type RequestBody } from "../../core/request-body.ts";
export { editMembers, type MemberEdit, readEachMember, readMembers, visitStrings } from "./json-scan.ts";
export { KeptBody, type SpareMemory } from "./kept-body.ts";
export { memoryOf } from "./read-tools.ts";
export { readTier, readUsage } from "./read-usage.ts";
export {
  type Origin,
  type ResponseHead,
  toOrigin,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamRequest,
} from "./upstream.ts";
export { UpstreamClient } from "./upstream-client.ts";
export { addUsage, NO_USAGE, type ToolUse, type Usage, type UsageRound } from "./usage.ts";
export { createUsageTap, type TappedResponse, type UsageTap } from "./usage-tap.ts";

/**
 * What a call used and cost: as the provider reported it, or estimated by what went through. A call without reported usage is never a call
 * without usage.
 */
import { NO_USAGE, type ResponseHead, type TappedResponse, type Usage } from "../../engines/relay/index.ts";
import type { CallSpend, UsageState } from "../limits/call-spend.ts";
import { ASSUMED_OUTPUT_TOKENS, estimateInput, estimateOutput } from "../limits/estimate-usage.ts";
import { costByCaller } from "../limits/price-table.ts";
import { tierInHeaders } from "../limits/price-tiers.ts";
import { readableStep } from "../limits/readable-step.ts";
import { requestedPieces, wantsAnnotations } from "../limits/requested-pieces.ts";
import { uncountedSearches } from "../limits/requested-tools.ts";
import { isFree } from "../limits/step-price.ts";
import type { Step } from "../step/step.ts";
import { toModelName } from "../step/model-name.ts";
import type { CallParts, CallStart } from "./call-start.ts";

interface AnsweredCall {
  readonly step: Step;
  /** Null when no response arrived. */
  readonly head: ResponseHead | null;
  /** What the response states; null when it was not read. */
  readonly tapped: TappedResponse | null;
  readonly isComplete: boolean;
  /** False for an error, a page or nothing with a success status, and for a stream that has no end. */
  readonly isAnswer: boolean;
  /** The client left while the provider was working on the call. */
  readonly isLeft: boolean;
  /** The beginning of the response, and the length of all of it. */
  readonly kept: Buffer;
  readonly responseBytes: number;
}

/** Types whose answers are text. */
const TEXT_TYPES: ReadonlySet<string> = new Set([
  "chat",
  "completions",
  "responses",
  "messages",
  "embeddings",
  "generate_content",
]);

export function measureCall(parts: CallParts, start: CallStart, call: AnsweredCall): CallSpend {
  const { step, head } = call;
  const named = toModelName(call.tapped?.model);
  const model = step.model === "" ? (named ?? "") : step.model;
  const isPriced = (usage: Usage) => priceOf(parts, start, call, model, usage) !== null;
  const [state, stated] = usageOf(call, isPriced);
  const usage = state === "none" ? stated : withUnstated(stated, step, head);
  const isServed = head !== null && head.status < 400;
  const isCustomCost = start.options.customCost !== undefined && isServed;
  return {
    state,
    usage,
    model,
    named,
    cost: costOf(parts, start, call, { state, usage, model, isCustomCost }),
    isCostEstimated: state === "estimated" && !isCustomCost,
    isCustomCost,
  };
}

/** What the counts of an answer leave out. */
function withUnstated(stated: Usage, step: Step, head: ResponseHead | null): Usage {
  const isAnnotated = stated.pages > 0 && wantsAnnotations(readableStep(step));
  const searches = stated.searches > 0 ? 0 : uncountedSearches(step);
  // The answer of a model that Bedrock invokes names its tier in a header.
  const isBedrock = step.provider.slug === "aws-bedrock" && stated.tier === "" && head !== null;
  const tier = isBedrock ? tierInHeaders(head.rawHeaders) : stated.tier;
  if (!isAnnotated && searches === 0 && tier === stated.tier) return stated;
  return { ...stated, isAnnotated, searches: stated.searches + searches, tier };
}

function costOf(
  { prices }: CallParts,
  { options: { customCost: custom }, gateway }: CallStart,
  { step, tapped }: AnsweredCall,
  { state, usage, model, isCustomCost }: Pick<CallSpend, "state" | "usage" | "model" | "isCustomCost">,
): number | null {
  if (custom !== undefined && isCustomCost) return costByCaller(custom, usage);
  if (state === "none") return 0;
  if (state === "unknown") return null;
  return priceOf({ prices }, { gateway }, { step, tapped }, model, usage);
}

function priceOf(
  { prices }: Pick<CallParts, "prices">,
  { gateway }: Pick<CallStart, "gateway">,
  { step, tapped }: Pick<AnsweredCall, "step" | "tapped">,
  model: string,
  usage: Usage,
): number | null {
  const { slug } = step.provider;
  const named = toModelName(tapped?.model);
  const own = prices.ofAccount(gateway.accountId);
  const cost = prices.costOf(slug, model, usage, own);
  // The name of an Azure deployment has no price; the response names the model.
  return cost === null && named !== null && named !== model ? prices.costOf(slug, named, usage, own) : cost;
}

/** `isPriced`: whether usage of the call's model has a price. */
function usageOf(call: AnsweredCall, isPriced: (usage: Usage) => boolean): [UsageState, Usage] {
  const { step, head, isComplete } = call;
  const usage = call.tapped?.usage ?? null;
  if (head === null)
    return call.isLeft && isBilled(step) ? ["estimated", expected(step)] : ["none", NO_USAGE];
  // What is read later was charged when it was made: the state of a batch repeats its usage.
  if (step.upstream.method === "GET" || step.isTracked === true) return ["none", NO_USAGE];
  const isReported = usage !== null && statesAny(usage);
  // A provider does not bill its own refusals, with whatever status, unless it says so.
  if (head.status >= 400) return isReported ? ["reported", usage] : ["none", NO_USAGE];
  if (isReported && isComplete) return ["reported", usage];
  if (!call.isAnswer && !isReported && estimateOutput(call.kept, call.responseBytes) === 0)
    return ["none", NO_USAGE];
  if (TEXT_TYPES.has(step.requestType)) return estimated(call, isReported ? usage : NO_USAGE);
  if (isReported) return ["estimated", usage];
  if (isFree(step) || step.requestType === "moderations") return ["none", NO_USAGE];
  const pieces = requestedPieces(readableStep(step));
  if (pieces !== null) {
    const asked = { ...NO_USAGE, tokensIn: estimateInput(step.upstream.body), ...pieces };
    return isPriced(asked) ? ["estimated", asked] : ["unknown", NO_USAGE];
  }
  // Of a path that is not known, an answer in text can be measured.
  const isMeasured =
    step.requestType === "" && isText(head) && estimateOutput(call.kept, call.responseBytes) > 0;
  return isMeasured ? estimated(call, NO_USAGE) : ["unknown", NO_USAGE];
}

function statesAny({ tokensIn, tokensOut, seconds, pages, rankings, reportedCost }: Usage): boolean {
  return tokensIn + tokensOut + seconds + pages + rankings > 0 || reportedCost !== null;
}

function isText({ contentType }: ResponseHead): boolean {
  return /^(?:application\/json|text\/event-stream)/i.test(contentType);
}

/** A stream that broke off may have reported its input, and part of its output. */
function estimated({ step, kept, responseBytes }: AnsweredCall, reported: Usage): [UsageState, Usage] {
  const written = step.requestType === "embeddings" ? 0 : estimateOutput(kept, responseBytes);
  if (reported.tokensIn > 0 && reported.tokensOut >= written && reported.tokensOut > 1)
    return ["reported", reported];
  const tokensIn = reported.tokensIn || estimateInput(step.upstream.body);
  return ["estimated", { ...reported, tokensIn, tokensOut: Math.max(reported.tokensOut, written) }];
}

function isBilled(step: Step): boolean {
  return !isFree(step) && step.requestType !== "moderations";
}

/** The provider goes on when a client leaves before the answer, and bills it. */
function expected(step: Step): Usage {
  const { upstream, maxOutputTokens, choices, requestType } = step;
  const tokensOut = requestType === "embeddings" ? 0 : (maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS) * choices;
  const pieces = requestedPieces(readableStep(step));
  return { ...NO_USAGE, tokensIn: estimateInput(upstream.body), tokensOut, ...pieces };
}

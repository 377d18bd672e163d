/**
 * The usage and the cost of an answered call: as the provider reported them, or estimated by what went through. A call without reported
 * usage is never a call without usage.
 */
import { NO_USAGE, type ResponseHead, type Usage } from "../../engines/relay/index.ts";
import type { CustomCost } from "../plan/call-options.ts";
import type { Step } from "../plan/plan-step.ts";
import { ASSUMED_OUTPUT_TOKENS, estimateInput, estimateOutput } from "./estimate-usage.ts";
import { costByCaller, type PriceOverrides, type PriceTable } from "./price-table.ts";

/**
 * `reported`: by the provider. `estimated`: from the request and from what of the response went through. `unknown`: nothing can be said,
 * as for a picture or a sound without usage. `none`: the call used nothing.
 */
export type UsageState = "reported" | "estimated" | "unknown" | "none";

export interface CallFigures {
  readonly state: UsageState;
  readonly usage: Usage;
  /** As the request names it, or else the response. */
  readonly model: string;
  /** The model that the response names; null when it names none, or was not asked. */
  readonly named: string | null;
  /** Dollars; null when the price or the usage is unknown. */
  readonly cost: number | null;
  readonly isCostEstimated: boolean;
  readonly isCustomCost: boolean;
}

export interface AnsweredCall {
  readonly step: Step;
  /** Null when no response arrived. */
  readonly head: ResponseHead | null;
  /** What the response states. */
  readonly usage: Usage | null;
  readonly model: string | null;
  readonly isComplete: boolean;
  /** The client left while the provider was working on the call. */
  readonly isLeft: boolean;
  /** The beginning of the response, and the length of all of it. */
  readonly kept: Buffer;
  readonly responseBytes: number;
}

export interface FigureParts {
  readonly prices: PriceTable;
  /** The prices of the account. */
  readonly own: PriceOverrides | undefined;
  readonly custom: CustomCost | undefined;
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
/** Types that cost something although the gateway cannot measure it. */
const OTHER_BILLED_TYPES: ReadonlySet<string> = new Set(["images", "audio"]);

export function figuresOf(parts: FigureParts, call: AnsweredCall): CallFigures {
  const { step, head } = call;
  const named = call.model;
  const model = step.model === "" ? (named ?? "") : step.model;
  const [state, usage] = usageOf(call);
  const isServed = head !== null && head.status < 400;
  const isCustomCost = parts.custom !== undefined && isServed;
  return {
    state,
    usage,
    model,
    named,
    cost: costOf(parts, call, { state, usage, model, isCustomCost }),
    isCostEstimated: state === "estimated" && !isCustomCost,
    isCustomCost,
  };
}

function costOf(
  { prices, own, custom }: FigureParts,
  { step, model: named }: AnsweredCall,
  { state, usage, model, isCustomCost }: Pick<CallFigures, "state" | "usage" | "model" | "isCustomCost">,
): number | null {
  if (custom !== undefined && isCustomCost) return costByCaller(custom, usage);
  if (state === "none") return 0;
  if (state === "unknown") return null;
  const { slug } = step.provider;
  const cost = prices.costOf(slug, model, usage, own);
  // The name of an Azure deployment has no price; the response names the model.
  return cost === null && named !== null && named !== model ? prices.costOf(slug, named, usage, own) : cost;
}

function usageOf(call: AnsweredCall): [UsageState, Usage] {
  const { step, head, usage, isComplete } = call;
  if (head === null)
    return call.isLeft && isBilled(step) ? ["estimated", expected(step)] : ["none", NO_USAGE];
  const isReported = usage !== null && (usage.tokensIn + usage.tokensOut > 0 || usage.reportedCost !== null);
  // A provider does not bill its own refusals, unless it says so.
  if (head.status >= 400) return isReported ? ["reported", usage] : ["none", NO_USAGE];
  if (isReported && isComplete) return ["reported", usage];
  if (TEXT_TYPES.has(step.requestType)) return estimated(call, isReported ? usage : NO_USAGE);
  if (isReported) return ["estimated", usage];
  return OTHER_BILLED_TYPES.has(step.requestType) ? ["unknown", NO_USAGE] : ["none", NO_USAGE];
}

/** A stream that broke off may have reported its input, and part of its output. */
function estimated({ step, kept, responseBytes }: AnsweredCall, reported: Usage): [UsageState, Usage] {
  const written = step.requestType === "embeddings" ? 0 : estimateOutput(kept, responseBytes);
  if (reported.tokensIn > 0 && reported.tokensOut >= written && reported.tokensOut > 1)
    return ["reported", reported];
  const tokensIn = reported.tokensIn || estimateInput(step.upstream.body);
  return ["estimated", { ...reported, tokensIn, tokensOut: Math.max(reported.tokensOut, written) }];
}

function isBilled({ requestType }: Step): boolean {
  return TEXT_TYPES.has(requestType) || OTHER_BILLED_TYPES.has(requestType);
}

/** The provider goes on when a client leaves before the answer, and bills it. */
function expected({ upstream, maxOutputTokens, choices, requestType }: Step): Usage {
  const tokensOut = requestType === "embeddings" ? 0 : (maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS) * choices;
  return { ...NO_USAGE, tokensIn: estimateInput(upstream.body), tokensOut };
}

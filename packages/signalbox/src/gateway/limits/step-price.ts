/**
 * What a step may cost, before it runs: its models, its tokens and its price.
 *
 * The caller writes the request, so the request is read as any provider might read it: every model that it names counts, and the most
 * expensive one is reserved. Which model ran is known from the response.
 */
import { NO_USAGE, type Usage } from "../../engines/relay/index.ts";
import { distinctModels, readNamedModels } from "../models/named-models.ts";
import type { Token } from "../../accounts/index.ts";
import type { CallOptions, CustomCost } from "../step/call-options.ts";
import { formValues } from "../step/body-facts.ts";
import type { Step } from "../step/step.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { SpendLimitSettings } from "../settings/gateway-settings.ts";
import { isBackground, isJob } from "./deferred-work.ts";
import { ASSUMED_OUTPUT_TOKENS, estimateInput } from "./estimate-usage.ts";
import { costByCaller, costByOverride, type PriceOverrides, type PriceTable } from "./price-table.ts";
import { dearerTier } from "./price-tiers.ts";
import { headerOf, readableStep } from "./readable-step.ts";
import { refersToOtherInput, searchedText } from "./referred-input.ts";
import { expectedPieces, requestedPieces } from "./requested-pieces.ts";
import { assumedToolCost } from "./requested-tools.ts";

export interface PricingParts {
  readonly prices: PriceTable;
  /** The prices of the account; undefined when it has none. */
  readonly own: PriceOverrides | undefined;
  /** A price of the caller that counts; undefined when the caller states none, or is not trusted. */
  readonly custom: CustomCost | undefined;
  readonly unknownPrice: SpendLimitSettings["unknown_price"];
}

/** The call, as far as the prices that count for it depend on it. */
export interface PricedCall {
  readonly gateway: Gateway;
  readonly options: CallOptions;
  readonly token: Token | null;
  readonly tokenId: string | null;
}

export function pricingOf(
  prices: PriceTable,
  { gateway, options, token, tokenId }: PricedCall,
): PricingParts {
  const { trust_custom_cost: isTrusted, spend_limits: settings } = gateway.settings;
  const mayPrice = isTrusted || tokenId === "root" || token?.permissions.has("gateway.price") === true;
  return {
    prices,
    own: prices.ofAccount(gateway.accountId),
    custom: mayPrice ? options.customCost : undefined,
    unknownPrice: settings?.unknown_price ?? "block",
  };
}

export interface StepPrice {
  /** The most that the step is expected to use. */
  readonly usage: Usage;
  /** Dollars; null when the price is unknown and calls without a price are refused. */
  readonly cost: number | null;
  /** Dollars that the step costs if its model reads and writes as much as it can; as `cost` for a request that bounds both. */
  readonly most: number;
  readonly isBounded: boolean;
  /** The request was only partly read: the rest may name a dearer model. */
  readonly isPartial?: boolean;
  /** The answer does not contain the work: without usage in it, the step counts with `cost`. */
  readonly isDeferred: boolean;
  /** Every model that the request may mean, without repetition. */
  readonly models: readonly string[];
}

/** These methods start no model in any known API. */
const READING: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE", "OPTIONS"]);
/** Paths that cost nothing: counting tokens, cancelling. */
const FREE_PATH = /(?:^|\/)messages\/count_tokens$|:countTokens$|\/(?:cancel|input_tokens)$/i;
/** Uploads. Behind some segments is the name of a model, which may be `files`. */
const UPLOAD = /(?:^|\/)(?:files|uploads)(?:\/|$)/i;
const NAMES_MODEL = /(?:^|\/)(?:models|run|predictions)(?:\/|$)/i;
/** Their answers have no tokens. */
const WITHOUT_OUTPUT: ReadonlySet<string> = new Set(["embeddings", "moderations"]);
const MAX_OUTPUT_TOKENS = 131_072;
/** The largest context window in common use. */
const MAX_INPUT_TOKENS = 1_048_576;

/**
 * Objects of a provider whose creation and change starts no model. What runs one has another name (`threads/runs`, `evals/{id}/runs`), and a search in a
 * store is billed. A client secret is not among them: a session that it opens does not pass through the gateway.
 */
const STORED_OBJECTS: Readonly<Record<string, RegExp>> = {
  openai: /^(?:v1\/)?(?:conversations|vector_stores|threads|evals|assistants|containers|skills)(?:\/|$)/i,
  anthropic: /^(?:v1\/)?skills(?:\/|$)/i,
};
const STARTS_WORK = /\/(?:runs(?:\/|$)|search$)/i;

export function isFree({ upstream, requestType, path, provider, isTracked }: Step): boolean {
  if (READING.has(upstream.method) || requestType === "models" || isTracked === true) return true;
  if (requestType !== "") return false;
  return (
    FREE_PATH.test(path) ||
    (UPLOAD.test(path) && !NAMES_MODEL.test(path)) ||
    (STORED_OBJECTS[provider.slug]?.test(path) === true && !STARTS_WORK.test(path))
  );
}

export const FREE: StepPrice = {
  usage: NO_USAGE,
  cost: 0,
  most: 0,
  isBounded: true,
  isDeferred: false,
  models: [],
};

export function priceStep(parts: PricingParts, step: Step): StepPrice {
  if (isFree(step)) return FREE;
  const readable = readableStep(step);
  const text = searchedText(readable.upstream.body);
  const models = modelsOf(readable, text);
  const usage = expectedUsage(parts, readable, models);
  const { custom } = parts;
  const isInputKnown = !refersToOtherInput(readable.upstream.body, text);
  // Of two members with one name the last one counts, and of a streamed body it may not have arrived.
  const isPartial = readable.upstream.body.kind === "streamed";
  const isOutputKnown = isPartial ? WITHOUT_OUTPUT.has(readable.requestType) : isOutputBounded(readable);
  const isKnown = (isInputKnown && isOutputKnown) || (custom !== undefined && "total" in custom);
  const costFor = (used: Usage) =>
    custom === undefined ? highestCost(parts, step.provider.slug, models, used) : costByCaller(custom, used);
  if (isJob(step)) {
    const cost = custom !== undefined || parts.unknownPrice === "allow" ? (costFor(usage) ?? 0) : null;
    return { usage, cost, most: cost ?? 0, isBounded: true, isDeferred: true, models };
  }
  const cost = costFor(usage);
  const isDeferred = isBackground(readable);
  if (isKnown) return { usage, cost, most: cost ?? 0, isBounded: true, isDeferred, models };
  const { choices } = readable;
  const largest = largestUsage(parts, step.provider.slug, models, usage, {
    isInputKnown,
    isOutputKnown,
    choices,
  });
  const most = costFor(largest);
  if (isDeferred) {
    return {
      usage: largest,
      cost: most,
      most: most ?? 0,
      isBounded: true,
      isPartial,
      isDeferred,
      models,
    };
  }
  // The caller alone decides what stands behind the part that is read, so such a call does not run beyond its limit for want of a bound.
  return { usage, cost, most: most ?? 0, isBounded: isPartial, isPartial, isDeferred, models };
}

/** What a request says about its own bounds. */
export interface KnownBounds {
  readonly isInputKnown: boolean;
  readonly isOutputKnown: boolean;
  /** Answers that it asks for. Default 1. */
  readonly choices?: number;
}

/**
 * The most that a request may use which does not bound itself. It is never longer than the context window of its model, whatever it refers to, and
 * no model is known to write more than `MAX_OUTPUT_TOKENS` in one answer, nor more than its context window.
 */
export function largestUsage(
  { prices }: PricingParts,
  slug: string,
  models: readonly string[],
  usage: Usage,
  { isInputKnown, isOutputKnown, choices = 1 }: KnownBounds,
): Usage {
  const contextOr = (unknown: number) => {
    const windows = models.map((model) => prices.contextWindowOf(slug, model) ?? unknown);
    return windows.length === 0 ? unknown : Math.max(...windows);
  };
  const tokensOut = isOutputKnown
    ? usage.tokensOut
    : Math.min(contextOr(MAX_OUTPUT_TOKENS), MAX_OUTPUT_TOKENS) * choices;
  const tokensIn = isInputKnown ? usage.tokensIn : Math.max(usage.tokensIn, contextOr(MAX_INPUT_TOKENS));
  return { ...usage, tokensIn, tokensOut };
}

/** Whether the step runs the model that it names. Of a body that was only partly read, a later member may have named another one. */
export function isModelCertain({ model, upstream }: Step, models: readonly string[]): boolean {
  return models.length === 1 && models[0] === model && upstream.body.kind !== "streamed";
}

/** What a step has cost; null when no price is known. `named` is the model that the response names, null when it names none. */
export function costOfStep(
  parts: PricingParts,
  step: Step,
  models: readonly string[],
  named: string | null,
  usage: Usage,
): number | null {
  if (parts.custom !== undefined) return costByCaller(parts.custom, usage);
  const isCertain = isModelCertain(step, models);
  const told =
    isCertain || named === null ? null : parts.prices.costOf(step.provider.slug, named, usage, parts.own);
  return told ?? highestCost(parts, step.provider.slug, models, usage);
}

/**
 * What limits count: the cost with the most expensive of the models, with an assumed price for tools that have none; null when no price is known and
 * calls without a price are refused.
 */
export function highestCost(
  parts: PricingParts,
  slug: string,
  models: readonly string[],
  usage: Usage,
): number | null {
  const { prices, own, unknownPrice } = parts;
  let cost: number | null = null;
  for (const model of models.length === 0 ? [""] : models) {
    const one = prices.costOf(slug, model, usage, own) ?? costWithAssumedTools(parts, slug, model, usage);
    if (one !== null && (cost === null || one > cost)) cost = one;
  }
  if (cost !== null || unknownPrice === "block") return cost;
  return unknownPrice === "allow" ? 0 : costByOverride(unknownPrice, usage);
}

/** Null if it is not the price of a tool that is unknown. */
function costWithAssumedTools(
  { prices, own }: PricingParts,
  slug: string,
  model: string,
  usage: Usage,
): number | null {
  const assumed = assumedToolCost(usage);
  if (assumed === null) return null;
  const plain = prices.costOf(slug, model, { ...usage, searches: 0, fileSearches: 0, tools: null }, own);
  return plain === null ? null : plain + assumed;
}

function isOutputBounded(step: Step): boolean {
  const { maxOutputTokens, requestType } = step;
  return maxOutputTokens !== null || WITHOUT_OUTPUT.has(requestType) || requestedPieces(step) !== null;
}

function expectedUsage({ prices, own }: PricingParts, step: Step, models: readonly string[]): Usage {
  const { provider, upstream, maxOutputTokens, choices, requestType, tier } = step;
  let tokensIn = estimateInput(upstream.body);
  // No model reads more than its context window; prices of the operator have none.
  const [model] = models;
  if (
    model !== undefined &&
    models.length === 1 &&
    prices.overrideOf(provider.slug, model, own) === undefined
  ) {
    tokensIn = Math.min(tokensIn, prices.contextWindowOf(provider.slug, model) ?? tokensIn);
  }
  const perChoice = maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS;
  return {
    ...NO_USAGE,
    tokensIn,
    tokensOut: WITHOUT_OUTPUT.has(requestType) ? 0 : perChoice * choices,
    tier: dearerTier(tier),
    ...expectedPieces(step),
  };
}

/**
 * True when the body plainly names one model: the word stands once, nothing is written with escapes, and there is no list of alternatives.
 * Most calls are of this kind, and are spared a search of all members.
 */
function isPlain({ requestType, provider, path, model }: Step, text: string | null): boolean {
  if (text === null || model === "") return false;
  if (requestType !== "chat" && requestType !== "messages" && requestType !== "responses") return false;
  if (path.includes("%") || path.includes("models/") || provider.modelInPath(path) !== null) return false;
  const at = text.indexOf('"model');
  if (at === -1 || text.indexOf('"model', at + 1) !== -1) return false;
  return !text.includes("\\u") && !text.includes('"fallback') && !text.includes('"tools"');
}

function modelsOf(step: Step, text: string | null): string[] {
  if (isPlain(step, text)) return [step.model];
  const { names, isCertain } = readNamedModels(step);
  const all = [...names];
  // The beginning of a streamed body may name the model.
  if (step.model !== "") all.push(step.model);
  if (!isCertain && isMultipart(step)) {
    const { body } = step.upstream;
    const bytes = body.kind === "whole" ? body.bytes : body.kind === "streamed" ? body.start : null;
    if (bytes !== null) all.push(...formValues(bytes, "model"));
  }
  return distinctModels(all);
}

function isMultipart({ upstream }: Step): boolean {
  return headerOf(upstream.headers, "content-type")?.toLowerCase().startsWith("multipart/form-data") === true;
}

/**
 * The response of a call as it passes, what the call used and cost, and its row in the call log. Usage is as the provider reported it, or
 * estimated by what went through: a call without reported usage is never a call without usage.
 */
import type { CallRecord } from "../../engines/call-log/index.ts";
import {
  createUsageTap,
  KeptBody,
  NO_USAGE,
  type ResponseHead,
  type TappedResponse,
  type Usage,
  type UsageTap,
} from "../../engines/relay/index.ts";
import type { CallFigures, UsageState } from "../limits/call-figures.ts";
import { ASSUMED_OUTPUT_TOKENS, estimateInput, estimateOutput } from "../limits/estimate-usage.ts";
import { costByCaller } from "../limits/price-table.ts";
import { isFree } from "../limits/step-price.ts";
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { ResponseFilter, Step } from "../step/step.ts";
import type { CallOutcome, CallParts, CallStart } from "./call-start.ts";

/** Of a response under limits: enough to estimate its output, if its usage is not reported. */
const ESTIMATED_BYTES = 64 * 1024;

/** The response as it passes to the client, and what is known of the call when it ends. */
export class PassingResponse {
  head: ResponseHead | null = null;
  /** Null until the call is settled. */
  figures: CallFigures | null = null;
  lastChunk: Buffer | null = null;
  /** Attempts before and beside the one that answered; null when there were none. */
  otherAttempts: AttemptReport[] | null = null;
  readonly #parts: CallParts;
  readonly #start: CallStart;
  readonly #kept: KeptBody;
  #tap: UsageTap | null = null;
  #filter: ResponseFilter | null = null;
  #firstByteMs: number | null = null;
  #bytes = 0;

  /** Keeps at least `cacheBytes` of the response for the cache. */
  constructor(parts: CallParts, start: CallStart, cacheBytes: number) {
    this.#parts = parts;
    this.#start = start;
    const logBytes = start.logDetail === "bodies" ? parts.payloadBytes : 0;
    const keptBytes = Math.max(cacheBytes, logBytes, start.account === null ? 0 : ESTIMATED_BYTES);
    this.#kept = new KeptBody(keptBytes, start.memory);
  }

  /** `tap` reads the usage of a translated response. */
  begin(step: Step, head: ResponseHead, tap: UsageTap | null): void {
    this.head = head;
    this.#firstByteMs = performance.now() - this.#start.startedAt;
    if (step.requestType !== "models") {
      this.#tap = tap ?? createUsageTap(head.contentType, wantsModel(this.#parts, this.#start, step));
    }
    this.#filter = step.filter?.(head) ?? null;
  }

  /** Returns what the client receives of these bytes. */
  pass(received: Buffer, isLast: boolean): Buffer {
    if (received.length > 0) this.#tap?.push(received);
    const chunk = this.#filter === null ? received : this.#filter.push(received, isLast);
    if (chunk.length > 0) {
      this.#bytes += chunk.length;
      this.lastChunk = chunk;
      this.#kept.add(chunk, isLast);
    }
    return chunk;
  }

  /** Determines what the call used and cost, once, and charges its limits. */
  settle(step: Step, isComplete: boolean, isLeft: boolean): CallFigures {
    this.figures ??= settleCall(this.#parts, this.#start, {
      step,
      head: this.head,
      tapped: this.#tap?.end() ?? null,
      isComplete,
      isLeft,
      kept: this.#kept.bytes,
      responseBytes: this.#bytes,
      otherAttempts: this.otherAttempts,
    });
    return this.figures;
  }

  /** Records the call. */
  end(
    step: Step,
    stepIndex: number,
    { status, isComplete }: Pick<CallOutcome, "status" | "isComplete">,
  ): Omit<CallOutcome, "isAbandoned" | "attemptStartedAt"> {
    const figures = this.settle(step, isComplete, false);
    const body = this.#kept.take();
    const ended = { step, status, isComplete, head: this.head, figures, firstByteMs: this.#firstByteMs };
    this.#parts.metrics.ended(step.provider.slug, status, this.#firstByteMs, figures);
    recordCall(this.#parts, this.#start, {
      ...ended,
      stepIndex,
      isCached: false,
      responseBytes: this.#bytes,
      body,
    });
    return {
      ...ended,
      body: this.#kept.isWhole && isComplete ? body : null,
      otherAttempts: this.otherAttempts,
    };
  }
}

export interface CallResult {
  readonly step: Step;
  readonly stepIndex: number;
  readonly status: number;
  readonly isComplete: boolean;
  readonly isCached: boolean;
  readonly head: ResponseHead | null;
  readonly firstByteMs: number | null;
  readonly figures: CallFigures;
  readonly responseBytes: number;
  /** The response body, or its beginning. */
  readonly body: Buffer;
}

/** Records the call, unless logging is off or the gateway was deleted: a later gateway of that name would show the row. */
export function recordCall(parts: CallParts, start: CallStart, result: CallResult): void {
  const { accountId, id } = start.gateway;
  if (start.logDetail === "none" || parts.gateways.find(accountId, id) === undefined) return;
  parts.callLog.record(toCallRecord(start, result, parts.payloadBytes));
}

function toCallRecord(start: CallStart, result: CallResult, payloadBytes: number): CallRecord {
  const { step, figures } = result;
  const { usage } = figures;
  const isKept = start.logDetail === "bodies";
  // Of a translated call the row has both bodies as the client knows them.
  const request = step.translation?.request ?? step.upstream.body;
  const sent = request.kind === "whole" ? request.bytes : request.kind === "streamed" ? request.start : null;
  const sentBytes = sent?.length ?? 0;
  const responseBody = isKept ? cut(result.body, payloadBytes) : null;
  return {
    id: start.id,
    accountId: start.gateway.accountId,
    gatewayId: start.gateway.id,
    createdAt: start.createdAt,
    provider: step.provider.slug,
    model: figures.model,
    path: step.path,
    method: step.upstream.method,
    requestType: step.requestType,
    requestContentType: start.request.headers["content-type"] ?? "",
    responseContentType: result.head?.contentType ?? "",
    statusCode: result.status,
    success: result.isComplete && result.status < 400,
    durationMs: performance.now() - start.startedAt,
    firstByteMs: result.firstByteMs,
    cached: result.isCached,
    step: result.stepIndex,
    tokensIn: usage.tokensIn,
    tokensOut: usage.tokensOut,
    tokensInCached: usage.tokensInCached,
    tokensInCacheWrite: usage.tokensInCacheWrite,
    tokensOutReasoning: usage.tokensOutReasoning,
    usageState: figures.state,
    cost: figures.cost,
    isCostEstimated: figures.isCostEstimated,
    isCustomCost: figures.isCustomCost,
    metadata: start.options.metadata ?? null,
    eventId: start.options.eventId ?? null,
    userAgent: start.request.headers["user-agent"] ?? "",
    tokenId: start.tokenId,
    clientDialect: step.translation?.clientDialect ?? null,
    providerDialect: step.translation?.providerDialect ?? null,
    dropped: step.translation === null || step.translation.dropped.length === 0 ? null : step.translation.dropped.join(","),
    requestBytes: request.kind === "streamed" ? (request.length ?? sentBytes) : sentBytes,
    responseBytes: result.responseBytes,
    requestBody: isKept && sent !== null ? cut(sent, payloadBytes) : null,
    responseBody,
    requestBodyComplete: request.kind !== "streamed" && sentBytes <= payloadBytes,
    responseBodyComplete: result.isComplete && responseBody?.length === result.responseBytes,
  };
}

function cut(bytes: Buffer, length: number): Buffer {
  return bytes.length <= length ? bytes : bytes.subarray(0, length);
}

interface AnsweredCall {
  readonly step: Step;
  /** Null when no response arrived. */
  readonly head: ResponseHead | null;
  /** What the response states; null when it was not read. */
  readonly tapped: TappedResponse | null;
  readonly isComplete: boolean;
  /** The client left while the provider was working on the call. */
  readonly isLeft: boolean;
  /** The beginning of the response, and the length of all of it. */
  readonly kept: Buffer;
  readonly responseBytes: number;
  /** Attempts before and beside the one that answered. */
  readonly otherAttempts: readonly AttemptReport[] | null;
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

/** Determines the figures of a call, and charges its limits with them. */
function settleCall(parts: CallParts, start: CallStart, call: AnsweredCall): CallFigures {
  const figures = figuresOf(parts, start, call);
  start.account?.settle(call.step, figures, call.otherAttempts);
  return figures;
}

/** Whether the model that the response names is needed: for the row, or for the price. */
function wantsModel({ prices }: CallParts, { account, gateway }: CallStart, step: Step): boolean {
  return (
    step.model === "" ||
    account?.wantsModel(step) === true ||
    prices.needsOtherName(step.provider.slug, step.model, prices.ofAccount(gateway.accountId))
  );
}

function figuresOf(parts: CallParts, start: CallStart, call: AnsweredCall): CallFigures {
  const { step, head } = call;
  const named = call.tapped?.model ?? null;
  const model = step.model === "" ? (named ?? "") : step.model;
  const [state, usage] = usageOf(call);
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

function costOf(
  { prices }: CallParts,
  { options: { customCost: custom }, gateway }: CallStart,
  { step, tapped }: AnsweredCall,
  { state, usage, model, isCustomCost }: Pick<CallFigures, "state" | "usage" | "model" | "isCustomCost">,
): number | null {
  if (custom !== undefined && isCustomCost) return costByCaller(custom, usage);
  if (state === "none") return 0;
  if (state === "unknown") return null;
  const { slug } = step.provider;
  const named = tapped?.model ?? null;
  const own = prices.ofAccount(gateway.accountId);
  const cost = prices.costOf(slug, model, usage, own);
  // The name of an Azure deployment has no price; the response names the model.
  return cost === null && named !== null && named !== model ? prices.costOf(slug, named, usage, own) : cost;
}

function usageOf(call: AnsweredCall): [UsageState, Usage] {
  const { step, head, isComplete } = call;
  const usage = call.tapped?.usage ?? null;
  if (head === null)
    return call.isLeft && isBilled(step) ? ["estimated", expected(step)] : ["none", NO_USAGE];
  const isReported = usage !== null && (usage.tokensIn + usage.tokensOut > 0 || usage.reportedCost !== null);
  // A provider does not bill its own refusals, unless it says so.
  if (head.status >= 400) return isReported ? ["reported", usage] : ["none", NO_USAGE];
  if (isReported && isComplete) return ["reported", usage];
  if (TEXT_TYPES.has(step.requestType)) return estimated(call, isReported ? usage : NO_USAGE);
  if (isReported) return ["estimated", usage];
  if (isFree(step) || step.requestType === "moderations") return ["none", NO_USAGE];
  // Of a path that is not known, an answer in text can be measured.
  const isMeasured =
    step.requestType === "" && isText(head) && estimateOutput(call.kept, call.responseBytes) > 0;
  return isMeasured ? estimated(call, NO_USAGE) : ["unknown", NO_USAGE];
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
function expected({ upstream, maxOutputTokens, choices, requestType }: Step): Usage {
  const tokensOut = requestType === "embeddings" ? 0 : (maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS) * choices;
  return { ...NO_USAGE, tokensIn: estimateInput(upstream.body), tokensOut };
}

/** Whole requests, responses and errors from one dialect into another, by way of the neutral form. */
import { checkShape } from "./shape.ts";
import type { Dialect } from "./dialect.ts";
import { DIALECTS } from "./dialects.ts";
import { FailedResponseError } from "./errors.ts";
import { isRecord, recordOf, requireRecord } from "./json.ts";
import { Losses } from "./losses.ts";
import type { NeutralError } from "./neutral/neutral-error.ts";
import type { NeutralUsage } from "./neutral/usage.ts";
import type { RequestOptions, ResponseContext, TranslatedRequest } from "./options.ts";
import { echoOf } from "./responses/response-object.ts";
import { eventsOf } from "./response-events.ts";
import { restoreTools } from "./restore-tools.ts";
import { allowedTools, refuseIfOnlyHosted, resolveToolChoice } from "./tool-choice.ts";
import { ToolNames } from "./tool-names.ts";
import { fillTraits } from "./traits.ts";
import { resolveWebSearch } from "./web-search.ts";

/**
 * A request of dialect `from` as a request of dialect `to`. The returned body shares parts of `body`: neither must be
 * changed afterwards. Throws `InvalidRequestError` for a request that is wrong in its own dialect, and
 * `UnsupportedFieldError` for a field that the target cannot express, unless `options.dropUnsupported` is set.
 */
export function translateRequest(
  from: Dialect,
  to: Dialect,
  body: unknown,
  options: RequestOptions,
): TranslatedRequest {
  const source = requireRecord(body, "body");
  checkShape(source);
  const losses = new Losses(to, options.dropUnsupported);
  const neutral = DIALECTS[from].decodeRequest(source, losses);
  const traits = fillTraits(to, options.model, options.target);
  neutral.tools = allowedTools(neutral);
  neutral.webSearch = resolveWebSearch(neutral, from, to, traits, losses);
  neutral.toolChoice = resolveToolChoice(neutral, from, losses);
  refuseIfOnlyHosted(source, neutral, losses);
  if (options.stream !== undefined && from === "gemini") neutral.stream = options.stream;
  const names = new ToolNames(DIALECTS[to].toolNames);
  const { model, newId, now } = options;
  const marksCache = options.marksCache === true && from !== "messages";
  const encoded = DIALECTS[to].encodeRequest(neutral, { from, model, traits, losses, names, marksCache });
  const context: ResponseContext = {
    from,
    to,
    model,
    responseModel: options.responseModel ?? null,
    stream: neutral.stream,
    includeUsage: neutral.includeUsage,
    renamedTools: names.renamed,
    echo: from === "responses" ? echoOf(source) : {},
    newId,
    now,
  };
  return { body: encoded, stream: neutral.stream, dropped: losses.list(), context };
}

/**
 * A whole response of the upstream in the client's dialect. Fields that the upstream left out get empty values. Throws
 * `FailedResponseError` for a response object that reports a failure although its HTTP status was a success.
 */
export function translateResponse(context: ResponseContext, body: unknown): Record<string, unknown> {
  if (context.to === "responses" && isRecord(body) && body["status"] === "failed") {
    throw new FailedResponseError(DIALECTS.responses.decodeError(500, body));
  }
  const neutral = DIALECTS[context.to].decodeResponse(recordOf(body), context.newId);
  return DIALECTS[context.from].encodeResponse(restoreTools(neutral, context.renamedTools), context);
}

/**
 * The same as the stream that a client expects which asked for one: some providers answer a stream with a whole response. Throws as
 * `translateResponse`.
 */
export function streamResponse(context: ResponseContext, body: unknown): string {
  const failed = context.to === "responses" && isRecord(body) && body["status"] === "failed";
  if (failed) throw new FailedResponseError(DIALECTS.responses.decodeError(500, body));
  const neutral = DIALECTS[context.to].decodeResponse(recordOf(body), context.newId);
  const encoder = DIALECTS[context.from].createEncoder(context);
  let text = "";
  for (const event of eventsOf(restoreTools(neutral, context.renamedTools))) text += encoder.encode(event);
  return text;
}

/** The usage in a response body of a dialect, or null. */
export function readUsage(dialect: Dialect, body: unknown): NeutralUsage | null {
  const { usageField, decodeUsage } = DIALECTS[dialect];
  const usage = recordOf(body)[usageField];
  return isRecord(usage) ? decodeUsage(usage) : null;
}

/** An upstream's error in the client's dialect. The status is the upstream's. */
export function translateError(
  context: Pick<ResponseContext, "from" | "to">,
  status: number,
  body: unknown,
): { readonly status: number; readonly body: Record<string, unknown> } {
  const error = DIALECTS[context.to].decodeError(status, body);
  return { status, body: DIALECTS[context.from].encodeError(error) };
}

/** An error body as the SDK of `dialect` reads it. */
export function encodeError(dialect: Dialect, error: NeutralError): Record<string, unknown> {
  return DIALECTS[dialect].encodeError(error);
}

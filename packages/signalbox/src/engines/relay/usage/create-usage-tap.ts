/** Picks the tap for a response by its content type. */
import { NO_USAGE } from "../../call-log/call-log.ts";
import { JsonUsageTap } from "./json-usage-tap.ts";
import { StreamUsageTap } from "./stream-usage-tap.ts";
import type { UsageDialect, UsageTap } from "./usage-tap.ts";

/**
 * A tap for one response body.
 *
 * It must be fed decoded bytes. The data plane asks providers for `accept-encoding: identity`; the body of a provider that compresses
 * all the same is relayed as it is, and has no usage.
 *
 * A caller that knows the model already says so: finding it takes more of a JSON body than finding its usage.
 *
 * `dialect` only tells whether there is anything to find: within a dialect the field names decide, because a provider's
 * OpenAI-compatible endpoint answers in another family than its native one.
 */
export function createUsageTap(
  dialect: UsageDialect,
  responseContentType: string,
  wantsModel = true,
): UsageTap {
  if (dialect === "none") return NO_TAP;
  const type = mediaType(responseContentType);
  if (type === "text/event-stream" || LINE_TYPES.has(type)) return new StreamUsageTap();
  return type === "" || type.endsWith("json") ? new JsonUsageTap(wantsModel) : NO_TAP;
}

/** One JSON object a line, as Ollama streams. */
const LINE_TYPES: ReadonlySet<string> = new Set([
  "application/x-ndjson",
  "application/jsonl",
  "application/stream+json",
]);

const NO_TAP: UsageTap = { push: () => undefined, end: () => ({ usage: NO_USAGE, model: null }) };

function mediaType(contentType: string): string {
  const end = contentType.indexOf(";");
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
}

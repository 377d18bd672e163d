/**
 * Reads the model and the output limit from a JSON request body.
 *
 * Small bodies are parsed, which also shows whether they are JSON. Of large ones (long conversations, images) only the top-level members
 * are scanned: parsing megabytes would delay every other call.
 */
import { SignalboxError } from "@signalbox/protocol";
import { readMembers } from "../../engines/relay/index.ts";

export interface BodyFacts {
  readonly model: string | null;
  readonly maxOutputTokens: number | null;
}

export const NO_FACTS: BodyFacts = { model: null, maxOutputTokens: null };

const PARSE_LIMIT_BYTES = 256 * 1024;
const WANTED: ReadonlySet<string> = new Set([
  "model",
  "max_completion_tokens",
  "max_output_tokens",
  "max_tokens",
]);

/** Throws `gateway_malformed_request` when the body is not a JSON object although `mustBeJson` requires one. */
export function inspectBody(bytes: Buffer, mustBeJson: boolean): BodyFacts {
  if (bytes.length > PARSE_LIMIT_BYTES) return inspectStart(bytes);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    if (mustBeJson) throw malformed("The body is not valid JSON");
    return NO_FACTS;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    if (mustBeJson) throw malformed("The body must be a JSON object");
    return NO_FACTS;
  }
  return toFacts(value as Record<string, unknown>);
}

/** Reads the beginning of a JSON object. */
export function inspectStart(bytes: Buffer): BodyFacts {
  return toFacts(Object.fromEntries(readMembers(bytes, WANTED)));
}

export function malformed(message: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message });
}

function toFacts(fields: Readonly<Record<string, unknown>>): BodyFacts {
  const { model, max_completion_tokens, max_output_tokens, max_tokens } = fields;
  const limit = max_completion_tokens ?? max_output_tokens ?? max_tokens;
  return {
    model: typeof model === "string" ? model : null,
    maxOutputTokens: typeof limit === "number" && limit >= 0 ? limit : null,
  };
}

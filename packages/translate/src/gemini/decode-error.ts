import { errorKindOf, looseMessage } from "../error-kind.ts";
import { isRecord, numberOrNull, textOrNull } from "../json.ts";
import type { NeutralError } from "../neutral/neutral-error.ts";

/** Streams that are not server-sent events wrap the error in a list. */
export function decodeGeminiError(status: number, body: unknown): NeutralError {
  const holder: unknown = Array.isArray(body) ? body[0] : body;
  const error = isRecord(holder) ? holder["error"] : undefined;
  const message = isRecord(error) ? textOrNull(error["message"]) : null;
  if (!isRecord(error) || message === null) {
    return { status, kind: errorKindOf(status), message: looseMessage(status, holder) };
  }
  const actual = status >= 400 ? status : (numberOrNull(error["code"]) ?? 500);
  // A wrong key is an invalid argument here.
  const isKey = error["status"] === "INVALID_ARGUMENT" && /api key/i.test(message);
  return {
    status: actual,
    kind: isKey ? "authentication" : errorKindOf(actual),
    message,
  };
}

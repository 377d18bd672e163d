import { errorKindOf, looseMessage } from "../error-kind.ts";
import { isRecord, textOrNull } from "../json.ts";
import type { NeutralError } from "../neutral/neutral-error.ts";

/** OpenAI's error body, which chat completions and responses share. */
export function decodeOpenAiError(status: number, body: unknown): NeutralError {
  const error = isRecord(body) ? body["error"] : undefined;
  const message = isRecord(error) ? textOrNull(error["message"]) : null;
  if (!isRecord(error) || message === null) {
    return { status, kind: errorKindOf(status), message: looseMessage(status, body) };
  }
  const { code } = error;
  const kind = error["type"] === "insufficient_quota" ? "billing" : errorKindOf(status);
  return {
    status,
    kind,
    message,
    code: typeof code === "number" ? String(code) : textOrNull(code),
    param: textOrNull(error["param"]),
  };
}

/**
 * The error of a failed model call. Its message begins with a code of the originals, because their clients derive from it whether to retry; it has
 * the status that the gateway or the provider answered.
 */
import { readStart } from "../../core/response-start.ts";

/** The originals' code for a status. */
const CODES: Readonly<Record<number, number>> = {
  403: 5018,
  404: 3042,
  405: 5019,
  408: 3007,
  413: 3006,
  429: 3040,
};
const MAX_MESSAGE = 2000;
const MAX_ERROR_BYTES = 64 * 1024;

export class AiError extends Error {
  override readonly name = "AiError";
  readonly status: number;
  /** Id of the call in the gateway's log, if it has a row. */
  readonly logId: string | null;

  constructor(message: string, status: number, logId: string | null) {
    super(message);
    this.status = status;
    this.logId = logId;
  }
}

export async function toAiError(response: Response): Promise<AiError> {
  const text = (await readStart(response, MAX_ERROR_BYTES)).bytes.toString("utf8");
  const code = CODES[response.status] ?? (response.status < 500 ? 5004 : undefined);
  const message = `${code === undefined ? "" : `${code}: `}${response.status} ${messageIn(text)}`;
  return new AiError(message.slice(0, MAX_MESSAGE), response.status, response.headers.get("gw-aig-log-id"));
}

/** The message in the JSON of the gateway (`message`) or of a provider (`error.message`), otherwise the text. */
function messageIn(text: string): string {
  try {
    const body = JSON.parse(text) as { message?: unknown; error?: { message?: unknown } | string };
    const inner = typeof body.error === "object" ? body.error.message : body.error;
    const message = inner ?? body.message;
    return typeof message === "string" ? message : text;
  } catch {
    return text;
  }
}

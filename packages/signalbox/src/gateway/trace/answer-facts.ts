/** What a span says about an answer, read from the bytes that the log keeps: its id, and why it ended. */
import type { RequestType } from "../step/step.ts";

export interface AnswerFacts {
  readonly id: string | null;
  readonly finishReason: string | null;
}

const NOTHING: AnswerFacts = { id: null, finishReason: null };
/** Ids and reasons are short words. */
const MAX_BYTES = 128;
const QUOTE = 0x22;
const COLON = 0x3a;

/** As bytes: a search for text encodes it every time. */
const REASON_KEYS: Readonly<Partial<Record<RequestType, Buffer>>> = {
  chat: Buffer.from('"finish_reason":'),
  completions: Buffer.from('"finish_reason":'),
  messages: Buffer.from('"stop_reason":'),
  generate_content: Buffer.from('"finishReason":'),
};
const ID = Buffer.from('"id":');
const GEMINI_ID = Buffer.from('"responseId":');

export function readAnswerFacts(body: Buffer | null, requestType: RequestType): AnswerFacts {
  if (body === null || body.length === 0) return NOTHING;
  const reason = REASON_KEYS[requestType];
  return {
    id: textAfter(body, body.indexOf(requestType === "generate_content" ? GEMINI_ID : ID)),
    // Of a stream the last one counts: the events before have null.
    finishReason: reason === undefined ? null : textAfter(body, body.lastIndexOf(reason)),
  };
}

/** The text of the member whose name begins at `at`; null when its value is no short plain text. */
function textAfter(body: Buffer, at: number): string | null {
  if (at === -1) return null;
  const colon = body.indexOf(COLON, at);
  let start = colon + 1;
  while (body[start] === 0x20) start += 1;
  if (body[start] !== QUOTE) return null;
  const end = body.indexOf(QUOTE, start + 1);
  if (end === -1 || end - start > MAX_BYTES) return null;
  const text = body.toString("latin1", start + 1, end);
  return text.includes("\\") ? null : text;
}

/**
 * Whether a binary event stream of Amazon Bedrock is an answer. Its failures are messages with the header `:exception-type`, inside a 200, and AWS's
 * clients throw them.
 */
import { type AwsMessage, AwsMessageReader, readAwsPayload } from "../../engines/relay/index.ts";
import { type AttemptFailure, inBandFailure } from "./attempt-failure.ts";

export function isAwsStream(contentType: string): boolean {
  return contentType.toLowerCase().startsWith("application/vnd.amazon.eventstream");
}

/** Of Converse: another message must follow these. Models that are invoked send their own events, in messages that have the name `chunk`. */
const OPEN_EVENTS: ReadonlySet<unknown> = new Set([
  "messageStart",
  "contentBlockStart",
  "contentBlockDelta",
  "contentBlockStop",
]);
/** Of Anthropic's models. */
const OPEN_TYPES = /^(?:message_start|message_delta|content_block_\w+|ping)$/;
/** In the last event of a model that is invoked. */
const METRICS = "amazon-bedrock-invocationMetrics";

export class AwsAnswer {
  readonly #messages = new AwsMessageReader();
  #last: AwsMessage | null = null;
  #exception: AwsMessage | null = null;
  #isMalformed = false;

  /** True when the first message has arrived. */
  get hasBegun(): boolean {
    return this.#last !== null || this.#isMalformed;
  }

  push(chunk: Buffer): void {
    if (this.#isMalformed) return;
    try {
      for (const message of this.#messages.push(Buffer.from(chunk))) {
        this.#last = message;
        if (isException(message)) this.#exception ??= message;
      }
    } catch {
      this.#isMalformed = true;
    }
  }

  /** Of what has arrived so far. */
  failure(status: number): AttemptFailure | null {
    if (this.#isMalformed) return inBandFailure(status, "the event stream is malformed", true);
    if (this.#exception === null) return null;
    const { headers, payload } = this.#exception;
    const name = headers.get(":exception-type") ?? headers.get(":error-code") ?? "exception";
    return inBandFailure(status, `${name}: ${payload.toString("utf8", 0, 200)}`);
  }

  /** Asked once, when the last byte has arrived. */
  fault(status: number): AttemptFailure | null {
    const failure = this.failure(status);
    if (failure !== null) return failure;
    if (this.#last === null && this.#messages.isBetweenMessages)
      return inBandFailure(status, "the stream ended without content");
    const isEnded = this.#messages.isBetweenMessages && this.#last !== null && mayEnd(this.#last);
    return isEnded ? null : inBandFailure(status, "the stream ended in the middle of the answer", true);
  }
}

function isException({ headers }: AwsMessage): boolean {
  return headers.has(":exception-type") || headers.has(":error-code");
}

/** False only for a message of a known API that another one must follow. */
function mayEnd(message: AwsMessage): boolean {
  if (OPEN_EVENTS.has(message.headers.get(":event-type"))) return false;
  let event: Readonly<Record<string, unknown>>;
  try {
    event = readAwsPayload(message);
  } catch {
    return true;
  }
  if (event[METRICS] !== undefined) return true;
  return !(typeof event["type"] === "string" && OPEN_TYPES.test(event["type"]));
}

/**
 * The binary event stream of Amazon Bedrock (`application/vnd.amazon.eventstream`) as the server-sent events that it contains: events of
 * Anthropic's stream. Bytes that are no message fail the exchange.
 */
import {
  type AwsMessage,
  AwsMessageReader,
  readAwsPayload,
  type ResponseHead,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
} from "../../engines/relay/index.ts";

const EVENT_STREAM = "text/event-stream; charset=utf-8";

/** Exceptions in a stream → types of Anthropic's errors. */
const ERROR_TYPES: Readonly<Record<string, string>> = {
  throttlingException: "rate_limit_error",
  validationException: "invalid_request_error",
  serviceUnavailableException: "overloaded_error",
  modelTimeoutException: "timeout_error",
};

/** What the messages of a stream are, as server-sent events. */
interface EventReader {
  /** A message that is no exception. */
  read(message: AwsMessage): string;
  /** What follows the last message. */
  end(): string;
}

const MODELS_OWN: EventReader = { read: ownEvent, end: () => "" };

/** Passes a binary event stream on as server-sent events, and every other response unchanged. */
export function readAwsEventStream(
  send: (handler: UpstreamHandler) => UpstreamExchange,
  handler: UpstreamHandler,
  reader: EventReader = MODELS_OWN,
): UpstreamExchange {
  let decoder: AwsEventDecoder | null = null;
  let isFailed = false;
  const exchange = send({
    onHead(head) {
      if (head.status < 400 && head.contentType.startsWith("application/vnd.amazon.eventstream")) {
        decoder = new AwsEventDecoder(reader);
      }
      handler.onHead(decoder === null ? head : asEventStream(head));
    },
    onBody(chunk, isLast) {
      if (isFailed) return;
      if (decoder === null) {
        handler.onBody(chunk, isLast);
        return;
      }
      try {
        let text = decoder.push(chunk);
        if (isLast && !decoder.isBetweenMessages) throw new Error("the event stream ends inside a message");
        if (isLast) text += reader.end();
        if (text !== "" || isLast) handler.onBody(Buffer.from(text), isLast);
      } catch (cause) {
        isFailed = true;
        if (!isLast) exchange.abort();
        handler.onFailure(new UpstreamFailure("broken", "the provider sent a malformed event stream", cause));
      }
    },
    onReadEnd: () => handler.onReadEnd(),
    onFailure: (failure) => handler.onFailure(failure),
  });
  return exchange;
}

function asEventStream(head: ResponseHead): ResponseHead {
  const rawHeaders = ["content-type", EVENT_STREAM];
  for (let i = 0; i + 1 < head.rawHeaders.length; i += 2) {
    const name = head.rawHeaders[i] ?? "";
    if (!/^content-(?:type|length)$/i.test(name)) rawHeaders.push(name, head.rawHeaders[i + 1] ?? "");
  }
  return { ...head, rawHeaders, contentType: EVENT_STREAM };
}

export class AwsEventDecoder {
  readonly #messages = new AwsMessageReader();
  readonly #reader: EventReader;

  constructor(reader: EventReader = MODELS_OWN) {
    this.#reader = reader;
  }

  get isBetweenMessages(): boolean {
    return this.#messages.isBetweenMessages;
  }

  /** The events of the messages that are complete, as text. Throws for bytes that are no messages. */
  push(chunk: Buffer): string {
    return this.#messages
      .push(chunk)
      .map((message) => toError(message) ?? this.#reader.read(message))
      .join("");
  }
}

/** Null for a message that is no exception. */
function toError(message: AwsMessage): string | null {
  const kind = message.headers.get(":exception-type") ?? message.headers.get(":error-code");
  if (kind === undefined) return null;
  const event = readAwsPayload(message);
  const text = typeof event["message"] === "string" ? event["message"] : kind;
  const error = { type: ERROR_TYPES[kind] ?? "api_error", message: text };
  return `event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`;
}

function ownEvent(message: AwsMessage): string {
  const event = readAwsPayload(message);
  return typeof event["type"] === "string"
    ? `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`
    : "";
}

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

/** Passes a binary event stream on as server-sent events, and every other response unchanged. */
export function readAwsEventStream(
  send: (handler: UpstreamHandler) => UpstreamExchange,
  handler: UpstreamHandler,
): UpstreamExchange {
  let decoder: AwsEventDecoder | null = null;
  let isFailed = false;
  const exchange = send({
    onHead(head) {
      if (head.status < 400 && head.contentType.startsWith("application/vnd.amazon.eventstream")) {
        decoder = new AwsEventDecoder();
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
        const text = decoder.push(chunk);
        if (isLast && !decoder.isBetweenMessages) throw new Error("the event stream ends inside a message");
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

  get isBetweenMessages(): boolean {
    return this.#messages.isBetweenMessages;
  }

  /** The events of the messages that are complete, as text. Throws for bytes that are no messages. */
  push(chunk: Buffer): string {
    return this.#messages.push(chunk).map(toEvent).join("");
  }
}

function toEvent(message: AwsMessage): string {
  const kind = message.headers.get(":exception-type") ?? message.headers.get(":error-code");
  const event = readAwsPayload(message);
  if (kind !== undefined) {
    const text = typeof event["message"] === "string" ? event["message"] : kind;
    const error = { type: ERROR_TYPES[kind] ?? "api_error", message: text };
    return `event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`;
  }
  return typeof event["type"] === "string"
    ? `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`
    : "";
}

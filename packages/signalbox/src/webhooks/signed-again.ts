/** The signature of a stored delivery that is delivered again. */
import type { SignedHeaders, WebhookEvent } from "../agents/index.ts";
import type { Source } from "./source.ts";

/** What the sender of a delivery that was stored for routes had sent. */
export interface SentHeaders {
  /** Decrypts those that are secret: for agents that read them. */
  read(): Readonly<Record<string, string>>;
  /** True for the whole body; an item of a list has no signature of its own. */
  readonly isWhole: boolean;
}

/**
 * Signatures are not stored, and a signed time would be too old. An agent that verifies a delivery again, which was verified when it arrived,
 * receives a new signature by the source's first secret. A scheme that only the provider can sign gives none.
 */
export function signedAgain(source: Source, event: WebhookEvent, now: number): SignedHeaders {
  return onDemand(() => sign(source, event, now));
}

/** The sender's own headers as long as their signed time is within the source's window: where only the vendor can sign, its verifier accepts no others. */
export function signedAsSent(
  source: Source,
  event: WebhookEvent,
  sent: SentHeaders,
  now: number,
): SignedHeaders {
  return onDemand(() => {
    const headers = sent.read();
    const delivery = { headers, body: Buffer.from(event.rawBody), urls: () => [] };
    const isInTime = () =>
      source.scheme.verify(delivery, source.keys, now, source.windowMs) !== "timestamp_outside_window";
    return sent.isWhole && isInTime() ? headers : { ...headers, ...sign(source, event, now) };
  });
}

function sign(source: Source, event: WebhookEvent, now: number): SignedHeaders["headers"] {
  const secret = source.secrets[0]?.reveal();
  if (secret === undefined) return {};
  try {
    const body = Buffer.from(event.rawBody);
    return source.scheme.sign({ secret, body, now, deliveryId: event.id, url: "" }).headers;
  } catch {
    return {};
  }
}

/** Most agents do not read them. */
function onDemand(read: () => SignedHeaders["headers"]): SignedHeaders {
  let headers: SignedHeaders["headers"] | undefined;
  return {
    get headers() {
      return (headers ??= read());
    },
  };
}

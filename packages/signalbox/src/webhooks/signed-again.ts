/** The signature of a stored delivery that is delivered again. */
import type { SignedHeaders, WebhookEvent } from "../agents/index.ts";
import type { Source } from "./source.ts";

const NO_HEADERS = {};

/**
 * Signatures are not stored, and a signed time would be too old. An agent that verifies a delivery again, which was verified when it arrived,
 * receives a new signature by the source's first secret. A scheme that only the provider can sign gives none.
 */
export function signedAgain(source: Source, event: WebhookEvent, now: number): SignedHeaders {
  return {
    get headers() {
      const secret = source.secrets[0]?.reveal();
      if (secret === undefined) return NO_HEADERS;
      try {
        const body = Buffer.from(event.rawBody);
        return source.scheme.sign({ secret, body, now, deliveryId: event.id, url: "" }).headers;
      } catch {
        return NO_HEADERS;
      }
    },
  };
}

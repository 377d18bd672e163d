/** What a step of a unified door has beyond other steps: two dialects, and a response that may have to be translated. */
import type { Dialect } from "@signalbox/translate";
import type { RequestBody, UpstreamExchange, UpstreamHandler, UsageTap } from "../../engines/relay/index.ts";

/** What a door takes or a provider expects. */
export type DoorDialect = Dialect | "embeddings";

export interface DoorStep {
  readonly clientDialect: DoorDialect;
  readonly providerDialect: DoorDialect;
  /** Fields of the request that were left out, as the caller allowed. */
  readonly dropped: readonly string[];
  /** The body as the client sent it. */
  readonly request: RequestBody;
  /** Headers of every response: name, value, name, value, … */
  readonly responseHeaders: readonly string[];
  /** The response is in the envelope of the management interface. */
  readonly isEnveloped?: boolean;
  /** Null when the response goes to the client as it is. */
  readonly convert: ResponseConverter | null;
}

/** Sends a request with `send`, and passes the response to `handler` in the client's dialect. */
export type ResponseConverter = (
  send: (handler: UpstreamHandler) => UpstreamExchange,
  handler: UpstreamHandler,
) => ConvertedExchange;

export interface ConvertedExchange extends UpstreamExchange {
  /** Reports the usage that the provider's bytes state, and ignores what is pushed into it; null when the call reads it from its own bytes. */
  readonly tap: UsageTap | null;
  /** What the client of a stream gets before the provider's first event; null when there is nothing, or it has begun. */
  begin(): Buffer | null;
  /** The event that tells the client of a stream that broke off; null for the usual one of the client's dialect. */
  cut(isTimeout: boolean): Buffer | null;
}

/** A step whose client and provider may speak different dialects, and the way its response takes between them. */
import type { SignalboxError } from "@signalbox/protocol";
import type { Dialect } from "@signalbox/translate";
import type { RequestBody, UpstreamExchange, UpstreamHandler, UsageTap } from "../../engines/relay/index.ts";

/** What a unified door takes or a provider expects. */
export type ApiDialect = Dialect | "embeddings";

export interface Translation {
  readonly clientDialect: ApiDialect;
  readonly providerDialect: ApiDialect;
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
  /** The event that tells the client of a stream that broke off, or that the gateway ended with `error`; null for the usual one of the client's dialect. */
  cut(isTimeout: boolean, error?: SignalboxError | null): Buffer | null;
}

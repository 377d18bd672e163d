/**
 * Where finished gateway calls go. Rows leave the request path through a bounded queue to a writer off the main thread.
 *
 * Invariants every adapter keeps:
 * 1. `record` never does I/O on the caller's thread and never loses a row silently: when the queue is full, `hasRoom` is false and
 *    `whenRoom` resolves once the caller may go on.
 * 2. A read sees every row recorded before it was called, flushed or not.
 * 3. `close` resolves when every recorded row is on stable storage.
 */
export interface CallRecord {
  /** ULID; also the order of rows. */
  readonly id: string;
  readonly accountId: string;
  readonly gatewayId: string;
  /** Milliseconds since the epoch, when the request's headers had arrived. */
  readonly createdAt: number;
  readonly provider: string;
  readonly model: string;
  /** Path after the provider segment, without the query. */
  readonly path: string;
  readonly method: string;
  /** What kind of call it was: `chat`, `responses`, `messages`, `embeddings`, …; empty when unknown. */
  readonly requestType: string;
  readonly requestContentType: string;
  readonly responseContentType: string;
  readonly statusCode: number;
  readonly success: boolean;
  /** To the end of the response. */
  readonly durationMs: number;
  /** To the response's first byte; null when none came. */
  readonly firstByteMs: number | null;
  readonly cached: boolean;
  /** Index of the fallback step that answered. */
  readonly step: number;
  readonly usage: CallUsage;
  /** US dollars; null when the model's price is unknown. */
  readonly cost: number | null;
  readonly isCustomCost: boolean;
  /** Flat JSON object from the request, serialised. */
  readonly metadata: string | null;
  readonly eventId: string | null;
  readonly userAgent: string;
  /** Token that authorised the call, if the gateway requires one. */
  readonly tokenId: string | null;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Bodies as kept, possibly cut at the limit; null when payloads are not collected. */
  readonly requestBody: Uint8Array | null;
  readonly responseBody: Uint8Array | null;
  readonly requestBodyComplete: boolean;
  readonly responseBodyComplete: boolean;
}

/** Token counts as providers report them; `in` and `out` are totals that include the finer counts. */
export interface CallUsage {
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** Part of `tokensIn` read from the provider's prompt cache. */
  readonly tokensInCached: number;
  /** Part of `tokensIn` written to the provider's prompt cache. */
  readonly tokensInCacheWrite: number;
  /** Part of `tokensOut` spent on reasoning. */
  readonly tokensOutReasoning: number;
}

export const NO_USAGE: CallUsage = {
  tokensIn: 0,
  tokensOut: 0,
  tokensInCached: 0,
  tokensInCacheWrite: 0,
  tokensOutReasoning: 0,
};

/** The part of the call log that the request path sees. */
export interface CallSink {
  record(call: CallRecord): void;
  readonly hasRoom: boolean;
  whenRoom(): Promise<void>;
}

/**
 * Looks at a copy of a provider's response and finds what the call used, without delaying a byte of it.
 *
 * A tap is fed every chunk of one response body in order and asked once at the end. It keeps a bounded amount of memory whatever the
 * response's size, and never throws: a body it cannot read simply has no usage.
 */
import type { CallUsage } from "../../call-log/call-log.ts";

export interface TappedResponse {
  readonly usage: CallUsage;
  /** Model as the response names it; null when it does not, or when nobody wanted to know. */
  readonly model: string | null;
}

export interface UsageTap {
  push(chunk: Uint8Array): void;
  end(): TappedResponse;
}

/** Which family of field names a provider's responses use. */
export type UsageDialect = "openai" | "anthropic" | "gemini" | "none";

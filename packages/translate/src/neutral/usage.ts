/**
 * Token counts of one call. `inputTokens` counts every input token, cached ones included, as chat completions does;
 * the encoder of a dialect that reports cached tokens apart (messages) subtracts them again.
 */
export interface NeutralUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Input tokens read from a prompt cache. Part of `inputTokens`. */
  readonly cacheReadTokens: number;
  /** Input tokens written to a prompt cache, of both lifetimes. Part of `inputTokens`. */
  readonly cacheWriteTokens: number;
  /** Input tokens written to the one-hour cache. Part of `cacheWriteTokens`. */
  readonly cacheWriteLongTokens: number;
  /** Output tokens spent on reasoning. Part of `outputTokens`. */
  readonly reasoningTokens: number;
}

/** A slow request may take this share of the time, so that one open page uses less than a tenth of a reader of the service. */
const SLOW_FACTOR = 10;

/** The time before which a poll must not repeat a request that ended now. A request that is faster than the interval is repeated by the interval. */
export function nextPollAt(startedAt: number, endedAt: number, refreshMs: number): number {
  const tookMs = endedAt - startedAt;
  return tookMs <= refreshMs ? endedAt : endedAt + SLOW_FACTOR * tookMs;
}

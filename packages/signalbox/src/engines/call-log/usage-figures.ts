import type { UsageFigures } from "./call-log.ts";

/** The figures of two groups as one; its group fields are those of the first. */
export function addUsageFigures(a: UsageFigures, b: UsageFigures): UsageFigures {
  return {
    ...a,
    calls: a.calls + b.calls,
    errors: a.errors + b.errors,
    cached: a.cached + b.cached,
    tokensIn: a.tokensIn + b.tokensIn,
    tokensOut: a.tokensOut + b.tokensOut,
    tokensInCached: a.tokensInCached + b.tokensInCached,
    tokensOutReasoning: a.tokensOutReasoning + b.tokensOutReasoning,
    cost: a.cost + b.cost,
    durationMs: a.durationMs + b.durationMs,
    latency: a.latency.map((count, i) => count + (b.latency[i] ?? 0)),
  };
}

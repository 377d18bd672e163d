/** When and under which key a call uses the cache, and how a cached response is given to a client. */
import { type CachedResponse, cacheKey, type ResponseCache } from "../cache/response-cache.ts";
import type { CallStart } from "./call.ts";
import { type CallResult, isLogged, toCallRecord } from "./call-record.ts";
import type { CallParts } from "./call-parts.ts";
import { toClientHeaders } from "./response-headers.ts";
import type { Step } from "./step.ts";

export interface CacheUse {
  readonly key: string;
  readonly ttlMs: number;
}

/** A caller that names a key wants caching; where the gateway sets no time, this one applies. */
const CUSTOM_KEY_TTL_S = 300;

/** Null when the call does not use the cache: switched off, skipped, several steps, or a body that is not in memory. */
export function planCacheUse(
  cache: ResponseCache,
  start: Pick<CallStart, "gateway" | "options" | "steps">,
): CacheUse | null {
  const { gateway, options, steps } = start;
  const [step] = steps;
  if (!cache.isOn || options.skipCache === true || step === undefined || steps.length > 1) return null;
  const { method, body } = step.upstream;
  if ((method !== "POST" && method !== "GET") || body.kind === "streamed") return null;
  const setting = gateway.settings.cache_ttl ?? 0;
  const ttlS =
    options.cacheTtlS ?? (setting > 0 ? setting : options.cacheKey === undefined ? 0 : CUSTOM_KEY_TTL_S);
  return ttlS === 0 ? null : { key: keyOf(start, step), ttlMs: ttlS * 1000 };
}

function keyOf({ gateway, options }: Pick<CallStart, "gateway" | "options">, step: Step): string {
  const { upstream } = step;
  const request =
    options.cacheKey === undefined
      ? [
          upstream.method,
          upstream.origin.key,
          upstream.target,
          upstream.body.kind === "whole" ? upstream.body.bytes : "",
        ]
      : ["custom", options.cacheKey];
  return cacheKey([
    gateway.accountId,
    gateway.id,
    String(gateway.cacheGeneration),
    step.provider.slug,
    step.credential,
    ...request,
  ]);
}

/** Answers a call from the cache; it costs nothing and leaves a row that says so. */
export function replay(parts: CallParts, start: CallStart, step: Step, cached: CachedResponse): void {
  const { response } = start;
  const firstByteMs = performance.now() - start.startedAt;
  const { head, body, usage } = cached;
  parts.metrics.ended(step.provider.slug, head.status, firstByteMs, usage, 0, true);
  if (isLogged(start)) {
    const result: CallResult = {
      step,
      stepIndex: 0,
      model: step.model,
      status: head.status,
      isComplete: true,
      isCached: true,
      head,
      firstByteMs,
      usage,
      cost: 0,
      responseBytes: body.length,
      body,
    };
    parts.sink.record(toCallRecord(start, result, parts.payloadBytes));
  }
  const headers = toClientHeaders(head, {
    logId: isLogged(start) ? start.id : null,
    cacheStatus: "HIT",
    step: start.showsStep ? 0 : null,
    errorOrigin: null,
  });
  response.writeHead(head.status, headers);
  response.end(body);
}

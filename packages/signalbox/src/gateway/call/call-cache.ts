/** When and under which key a call uses the cache, and how a cached response is given to a client. */
import { type CachedResponse, cacheKey, type ResponseCache } from "../cache/response-cache.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";
import type { CallStart } from "./call.ts";
import { type CallResult, isLogged, toCallRecord } from "./call-record.ts";
import type { CallParts } from "./call-parts.ts";
import { isNeutral } from "./forwarded-headers.ts";
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

/**
 * Everything that goes upstream is in the key, but for the headers that no answer depends on: whatever a provider takes for a credential,
 * an organisation, a project or a version, in a header, the query or the path, callers that differ in it do not share. A caller's own
 * key stands for the body and for nothing else.
 */
function keyOf({ gateway, options }: Pick<CallStart, "gateway" | "options">, step: Step): string {
  const { method, origin, target, headerLines, body } = step.upstream;
  return cacheKey([
    gateway.accountId,
    gateway.id,
    String(gateway.cacheGeneration),
    step.provider.slug,
    method,
    origin.key,
    target,
    telling(headerLines),
    ...(options.cacheKey === undefined
      ? ["body", body.kind === "whole" ? body.bytes : ""]
      : ["custom", options.cacheKey]),
  ]);
}

/** The header lines less the neutral ones. */
function telling(headerLines: string): string {
  let kept = "";
  for (const line of headerLines.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    if (colon !== -1 && !isNeutral(name)) kept += `${name}${line.slice(colon)}\n`;
  }
  return kept;
}

/** Whether an answer says that it depends on something the key leaves out (RFC 9110, section 12.5.5). */
export function variesBeyondKey({ rawHeaders }: ResponseHead): boolean {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== "vary") continue;
    for (const part of (rawHeaders[i + 1] ?? "").split(",")) {
      const name = part.trim().toLowerCase();
      // Every call asks for unpacked bytes, whatever its client asked for.
      if (name === "*" || (isNeutral(name) && name !== "accept-encoding")) return true;
    }
  }
  return false;
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

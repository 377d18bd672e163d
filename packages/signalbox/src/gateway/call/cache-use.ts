/** Decides whether a call uses the cache, and under which key. */
import { readMembers, type RequestBody, type ResponseHead } from "../../engines/relay/index.ts";
import type { CallStart } from "./call-start.ts";
import { readNamedModels } from "../models/named-models.ts";
import { isNeutral } from "../plan/forwarded-request.ts";
import type { Step } from "../step/step.ts";
import { cacheKey, type ResponseCache } from "../cache/response-cache.ts";

export interface CacheUse {
  readonly key: string;
  readonly ttlMs: number;
}

/** Applies when the caller names a key and neither the caller nor the gateway sets a lifetime. */
const CUSTOM_KEY_TTL_S = 300;

/** `guardrails` identifies the rules under which an answer was given. Null when the call does not use the cache: it is off or skipped, the call has several steps, or its body is not in memory. */
export function planCacheUse(
  cache: ResponseCache,
  start: Pick<CallStart, "gateway" | "options" | "steps" | "moreSteps">,
  guardrails = "",
): CacheUse | null {
  const { gateway, options, steps } = start;
  const [step] = steps;
  const setting = gateway.settings.cache_ttl ?? 0;
  const ttlS =
    options.cacheTtlS ?? (setting > 0 ? setting : options.cacheKey === undefined ? 0 : CUSTOM_KEY_TTL_S);
  if (ttlS === 0 || options.skipCache === true || !cache.isOn) return null;
  if (step === undefined || steps.length > 1 || start.moreSteps !== undefined) return null;
  const { method, body } = step.upstream;
  if ((method !== "POST" && method !== "GET") || body.kind === "streamed") return null;
  return { key: keyOf(start, step, guardrails), ttlMs: ttlS * 1000 };
}

/**
 * The key contains everything that goes upstream except neutral headers. Calls that differ in a credential, an organisation, a project or
 * a version, in whichever header, query or path a provider expects it, therefore never share a response. A key that the caller names
 * replaces the body except for the form of the response and the models that it names: the token's rules were checked for these models, and a response of another
 * model must not be returned, neither from the cache nor from a call with the same key that is upstream.
 */
function keyOf(
  { gateway, options }: Pick<CallStart, "gateway" | "options">,
  step: Step,
  guardrails: string,
): string {
  const { method, origin, target, headers } = step.upstream;
  return cacheKey([
    gateway.accountId,
    gateway.id,
    String(gateway.cacheGeneration),
    step.provider.slug,
    method,
    origin.key,
    target,
    significant(headers),
    step.keyScope,
    `${step.translation?.clientDialect ?? ""}${step.translation?.isEnveloped === true ? " in an envelope" : ""}`,
    guardrails,
    ...(options.cacheKey === undefined
      ? ["body", ...bodiesOf(step)]
      : ["custom", options.cacheKey, modelsOf(step), formOf(step)]),
  ]);
}

/** Requests whose models cannot be determined share no key with those that name theirs. */
function modelsOf(step: Step): string {
  const { names, isCertain } = readNamedModels(step);
  return JSON.stringify([isCertain, step.model, names.toSorted()]);
}

/** `requests`: Gemini's batch of embeddings, whose answer is a list. */
const FORM_MEMBERS: ReadonlySet<string> = new Set(["stream", "stream_options", "requests"]);

/** What decides the form of the response: a client that expects a stream cannot read a JSON object. */
function formOf(step: Step): string {
  const read = (body: string | Buffer) => {
    if (typeof body === "string") return "";
    const members = readMembers(body, FORM_MEMBERS);
    return JSON.stringify([...FORM_MEMBERS].map((name) => members.get(name) ?? null));
  };
  return bodiesOf(step).map(read).join(" ");
}

/**
 * Of a translated call the client's body: it decides the request and the form of the response. A client of Gemini has model and stream in the path, so the
 * body that is sent counts, too.
 */
function bodiesOf({ upstream, translation }: Step): (string | Buffer)[] {
  const sent = bytesOf(upstream.body);
  if (translation === null || translation.convert === null) return [sent];
  const own = bytesOf(translation.request);
  return translation.clientDialect === "gemini" ? [own, sent] : [own];
}

function bytesOf(body: RequestBody): string | Buffer {
  return body.kind === "whole" ? body.bytes : "";
}

/** The headers as text, without neutral ones. */
function significant(headers: readonly string[]): string {
  let text = "";
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = (headers[i] ?? "").toLowerCase();
    if (!isNeutral(name)) text += `${name}: ${headers[i + 1]}\n`;
  }
  return text;
}

/** True when a response declares that it depends on a header outside the key (RFC 9110, section 12.5.5). */
export function variesBeyondKey({ rawHeaders }: ResponseHead): boolean {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== "vary") continue;
    for (const part of (rawHeaders[i + 1] ?? "").split(",")) {
      const name = part.trim().toLowerCase();
      // Every call goes upstream with `accept-encoding: identity`, whatever its client sent.
      if (name === "*" || (isNeutral(name) && name !== "accept-encoding")) return true;
    }
  }
  return false;
}

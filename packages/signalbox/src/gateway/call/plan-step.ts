/** Turns a request for one provider into a step: checks the body as far as the gateway understands it, and says where it goes. */
import type { Provider } from "../providers/provider.ts";
import { CUSTOM_PREFIX, type ProviderDirectory } from "../providers/provider-directory.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { GatewaySettings } from "../settings/gateway-settings.ts";
import type { ProviderKeys } from "../settings/provider-keys.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { CallOptions } from "./call-options.ts";
import { type BodyFacts, inspectBody, inspectStart, malformed, NO_FACTS } from "./inspect-body.ts";
import { isUnderstood, type RequestType, requestTypeOf } from "./request-type.ts";
import type { AttemptPolicy, Step } from "./step.ts";

export interface StepParts {
  readonly providers: ProviderDirectory;
  readonly keys: ProviderKeys;
}

export interface StepRequest {
  readonly gateway: Gateway;
  readonly provider: Provider;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headerLines: string;
  /** As the caller sent it; empty when it sent none. */
  readonly credentialLines: string;
  readonly contentType: string | undefined;
  readonly isEncoded: boolean;
  readonly body: RequestBody;
  readonly options: CallOptions;
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const DEFAULT_RETRY_DELAY_MS = 100;

export function planStep({ keys }: StepParts, wanted: StepRequest): Step {
  const { provider, path, method, query } = wanted;
  const requestType = method === "POST" ? requestTypeOf(path) : path.endsWith("models") ? "models" : "";
  const facts = factsOf(wanted, requestType);
  const { origin, path: upstreamPath } = provider.locate(path, wanted.gateway.accountId);
  const credential = credentialOf(keys, wanted);
  return {
    provider,
    path,
    requestType,
    model: facts.model ?? provider.modelInPath(path) ?? "",
    facts,
    upstream: {
      origin,
      method,
      target: query === "" ? upstreamPath : `${upstreamPath}?${query}`,
      headerLines: wanted.headerLines + credential + provider.extraHeaderLines,
      body: wanted.body,
    },
    policy: toPolicy(wanted.options, wanted.gateway.settings),
  };
}

/** The caller's own credential, or a stored key where it brings none or asks for one by its alias. */
function credentialOf(
  keys: ProviderKeys,
  { gateway, provider, options, credentialLines, query }: StepRequest,
): string {
  if (options.keyAlias === undefined) {
    // Google's APIs also take the key as a query parameter.
    const hasCredential =
      credentialLines !== "" || (provider.usage === "gemini" && /(?:^|&)key=/.test(query));
    if (hasCredential) return credentialLines;
  }
  const key = keys.find(gateway, provider.slug, options.keyAlias);
  return key === null
    ? credentialLines
    : `${provider.credentialHeaders[0] ?? "authorization"}: ${provider.toCredential(key)}\r\n`;
}

function factsOf(wanted: StepRequest, requestType: RequestType): BodyFacts {
  const { body, contentType, provider } = wanted;
  if (!isUnderstood(requestType)) {
    // Gemini-shaped and unknown calls: look, but let the provider judge.
    return body.kind === "whole" && requestType === "generate_content" && !wanted.isEncoded
      ? inspectBody(body.bytes, false)
      : NO_FACTS;
  }
  // A compressed body passes as it is; the provider unpacks it or refuses it.
  if (wanted.isEncoded) return NO_FACTS;
  if (requestType === "chat" && contentType !== undefined && !JSON_TYPE.test(contentType)) {
    throw malformed("Content-Type must be application/json");
  }
  if (body.kind === "none") throw malformed("The body is empty");
  // Of a body that is still coming only the beginning can be judged, and by the provider.
  if (body.kind === "streamed") return inspectStart(body.start);
  const facts = inspectBody(body.bytes, contentType === undefined || JSON_TYPE.test(contentType));
  if (facts.model === null && needsModel(requestType, provider, wanted.path)) {
    throw malformed("model is required and must be a string");
  }
  return facts;
}

/** An account's own providers may have a model of their own choice. */
function needsModel(requestType: RequestType, provider: Provider, path: string): boolean {
  return (
    (requestType === "chat" || requestType === "messages" || requestType === "embeddings") &&
    !provider.slug.startsWith(CUSTOM_PREFIX) &&
    provider.modelInPath(path) === null
  );
}

function toPolicy(options: CallOptions, settings: GatewaySettings): AttemptPolicy {
  return {
    requestTimeoutMs: options.requestTimeoutMs ?? null,
    maxAttempts: options.maxAttempts ?? settings.retry_max_attempts ?? 1,
    retryDelayMs: options.retryDelayMs ?? settings.retry_delay ?? DEFAULT_RETRY_DELAY_MS,
    backoff: options.backoff ?? settings.retry_backoff ?? "constant",
  };
}

/**
 * Parses the body of the universal endpoint: an array of steps (or one step), each with a provider, an endpoint, headers and the JSON to
 * send. A step's headers take precedence over its `config`, then the request's headers, then the gateway's settings.
 */
import { SignalboxError } from "@signalbox/protocol";
import { bearerText } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { ModelNames } from "../models/model-names.ts";
import type { ModelTarget, RouteResolver } from "../models/model-target.ts";
import type { Provider } from "../providers/provider.ts";
import type { Gateway } from "../settings/gateway.ts";
import { type CallOptions, stepConfigOptions } from "./call-options.ts";
import type { DoorRequest } from "./door-request.ts";
import {
  checkProviderPath,
  type ForwardedHeaders,
  readForwardedHeaders,
  refuseOwnTokenInTarget,
  type RootTokenCheck,
} from "./forwarded-request.ts";
import { planDoorStep } from "./plan-door-step.ts";
import { malformed, planStep, type Step, type StepParts } from "./plan-step.ts";

const MAX_STEPS = 20;
/** RFC 9110, section 5: a token, and visible characters without line breaks. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface UniversalParts extends StepParts {
  readonly clock: Clock;
  readonly modelNames: ModelNames;
  readonly resolveRoute: RouteResolver;
  readonly authenticator: RootTokenCheck;
}

export function parseUniversalSteps(
  bytes: Buffer,
  gateway: Gateway,
  parts: UniversalParts,
  callOptions: CallOptions,
  traceparent: string | null,
): Step[] {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw malformed("The body is not valid JSON");
  }
  const items: unknown[] = Array.isArray(value) ? value : [value];
  if (items.length === 0 || items.length > MAX_STEPS) {
    throw malformed(`The body must be an array of 1 to ${MAX_STEPS} steps`);
  }
  return items.flatMap((item, i) => {
    try {
      return toSteps(item, gateway, parts, callOptions, traceparent);
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error;
      throw new SignalboxError(error.id, { message: `step ${i}: ${error.message}` });
    }
  });
}

/** One step, or several for a route. */
function toSteps(
  item: unknown,
  gateway: Gateway,
  parts: UniversalParts,
  callOptions: CallOptions,
  traceparent: string | null,
): readonly Step[] {
  if (typeof item !== "object" || item === null) throw malformed("must be an object");
  const given = item as Record<string, unknown>;
  const { provider: slug, endpoint, query } = given;
  if (typeof slug !== "string") throw malformed("provider must be a string");
  const provider = slug === COMPAT ? null : parts.providers.find(gateway.accountId, slug);
  if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
  if (typeof endpoint !== "string") throw malformed("endpoint must be a string");
  const [path, search] = splitEndpoint(endpoint);
  checkProviderPath(path);
  refuseOwnTokenInTarget(parts.authenticator, path, search);
  const rawHeaders = toRawHeaders(given["headers"]);
  const forwarded = readForwardedHeaders(
    rawHeaders,
    undefined,
    provider?.credentialHeaders ?? ["authorization"],
    parts.authenticator,
  );
  const options = { ...callOptions, ...stepConfigOptions(given["config"]), ...forwarded.options };
  const body: RequestBody = { kind: "whole", bytes: toJson(query ?? {}) };
  const unified = planUnifiedStep(parts, {
    gateway,
    provider,
    path,
    query,
    search,
    forwarded,
    traceparent,
    body,
    options,
  });
  if (unified !== null) return unified;
  if (provider === null) throw malformed(`${COMPAT} has no endpoint ${path.slice(0, 64)}`);
  const step = planStep(parts, {
    gateway,
    provider,
    method: "POST",
    path,
    query: search,
    forwarded,
    traceparent,
    contentType: rawHeaders[1],
    isEncoded: false,
    body,
    options,
    door: null,
    facts: null,
  });
  return [step];
}

const COMPAT = "compat";
const ENDPOINTS: ReadonlyMap<string, DoorRequest["endpoint"]> = new Map([
  ["chat/completions", "chat"],
  ["responses", "responses"],
  ["messages", "messages"],
  ["embeddings", "embeddings"],
]);

/**
 * The steps of a call whose provider does not speak the dialect that the endpoint names, or whose model names the provider
 * (`compat`); null when the provider takes the call as it is.
 */
function planUnifiedStep(
  parts: UniversalParts,
  step: Pick<DoorRequest, "gateway" | "body" | "options" | "traceparent"> & {
    readonly provider: Provider | null;
    readonly path: string;
    readonly query: unknown;
    readonly search: string;
    readonly forwarded: ForwardedHeaders;
  },
): readonly Step[] | null {
  const { provider, forwarded, query } = step;
  const endpoint = ENDPOINTS.get(step.path.startsWith("v1/") ? step.path.slice(3) : step.path);
  if (endpoint === undefined || typeof query !== "object" || query === null) return null;
  const fields = query as Readonly<Record<string, unknown>>;
  const { model } = fields;
  if (typeof model !== "string" || model === "") return null;
  if (provider !== null && speaks(provider, model, endpoint)) return null;
  const [header, value = ""] = forwarded.credential;
  const request: DoorRequest = {
    ...step,
    endpoint,
    fields: () => fields,
    isStream: fields["stream"] === true,
    query: step.search,
    headers: forwarded.headers,
    credential: header === undefined ? null : { header, value, key: bearerText(value) ?? value },
    now: parts.clock.now(),
  };
  return targetsOf(parts, request, provider, model).map((target) => planDoorStep(parts, request, target));
}

function speaks(provider: Provider, model: string, endpoint: DoorRequest["endpoint"]): boolean {
  const { calls, embeddings } = provider.apisFor(model);
  if (endpoint === "embeddings") return embeddings?.dialect !== "gemini";
  // A provider without an API for conversations judges the call itself.
  return calls.length === 0 || calls.some(({ dialect }) => dialect === endpoint);
}

function targetsOf(
  parts: UniversalParts,
  { gateway, options, fields }: DoorRequest,
  provider: Provider | null,
  model: string,
): readonly ModelTarget[] {
  if (provider !== null) return [{ provider, model, isExplicit: true }];
  const named = parts.modelNames.resolve(gateway.accountId, model);
  if (named.kind === "model") return [named];
  return parts.resolveRoute({
    gateway,
    route: named.name,
    options,
    body: fields,
    header: () => undefined,
    tokenId: null,
  });
}

/** V8 parses JSON in a loop but writes it recursively, so a deeply nested value that was parsed may not be writable. */
function toJson(value: unknown): Buffer {
  try {
    return Buffer.from(JSON.stringify(value));
  } catch (error) {
    if (error instanceof RangeError) throw malformed("query is nested too deeply");
    throw error;
  }
}

function splitEndpoint(endpoint: string): [string, string] {
  const trimmed = endpoint.replace(/^\/+/, "");
  if (!/^[\x21-\x7e]*$/.test(trimmed) || trimmed.includes("#")) {
    throw malformed("endpoint must be a path in printable ASCII");
  }
  const question = trimmed.indexOf("?");
  return question === -1 ? [trimmed, ""] : [trimmed.slice(0, question), trimmed.slice(question + 1)];
}

/** The headers of a step as a request would carry them: name, value, name, value, …; names in lower case, `content-type` first. */
function toRawHeaders(given: unknown): string[] {
  if (given !== undefined && given !== null && (typeof given !== "object" || Array.isArray(given))) {
    throw malformed("headers must be an object");
  }
  const headers = ["content-type", "application/json"];
  for (const [raw, value] of Object.entries(given ?? {})) {
    const name = raw.toLowerCase();
    const text = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
    if (!HEADER_NAME.test(name) || typeof text !== "string" || !HEADER_VALUE.test(text)) {
      throw malformed(`headers.${raw.slice(0, 64)} is not a valid header`);
    }
    if (name === "content-type") headers[1] = text;
    else headers.push(name, text);
  }
  return headers;
}

/**
 * Parses the body of the universal endpoint: an array of steps (or one step), each with a provider, an endpoint, headers and the JSON to
 * send. A step's headers take precedence over its `config`, then the request's headers, then the gateway's settings. What concerns the
 * whole call is taken from the first step: clients of the hosted original repeat it in the headers of every step.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { ModelNames } from "../models/model-names.ts";
import { type CallOptions, stepConfigOptions } from "../step/call-options.ts";
import type { ModelRequest } from "./model-request.ts";
import {
  checkProviderPath,
  readForwardedHeaders,
  refuseOwnTokenInTarget,
  type RootTokenCheck,
} from "./forwarded-request.ts";
import { planModelStep } from "./plan-model-step.ts";
import { COMPAT, targetOf, toModelRequest } from "./universal-door.ts";
import { malformed } from "../step/malformed.ts";
import { planStep, type StepParts } from "./plan-step.ts";
import type { Step } from "../step/step.ts";

const MAX_STEPS = 20;
/** RFC 9110, section 5: a token, and visible characters without line breaks. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface UniversalParts extends StepParts {
  readonly clock: Clock;
  readonly modelNames: ModelNames;
  readonly authenticator: RootTokenCheck;
}

interface UniversalCall {
  readonly steps: Step[];
  /** Those of the request, with those of the first step that concern the whole call. */
  readonly options: CallOptions;
}

const OF_THE_CALL = [
  "skipCache",
  "cacheTtlS",
  "cacheKey",
  "collectLog",
  "collectLogPayload",
  "metadata",
  "customCost",
  "eventId",
] as const satisfies (keyof CallOptions)[];

/** The request of the universal endpoint, apart from what its body says. */
export type UniversalRequest = Pick<
  ModelRequest,
  "gateway" | "options" | "traceparent" | "isAuthenticated" | "holdMemory"
>;

export function parseUniversalSteps(
  bytes: Buffer,
  request: UniversalRequest,
  parts: UniversalParts,
): UniversalCall {
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
  const calls = items.map((item, i) => {
    try {
      return toStep(item, request, parts);
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error;
      throw new SignalboxError(error.id, { message: `step ${i}: ${error.message}` });
    }
  });
  const first = calls[0]?.own ?? {};
  const shared = Object.fromEntries(
    OF_THE_CALL.flatMap((name) => (first[name] === undefined ? [] : [[name, first[name]]])),
  ) as CallOptions;
  return { steps: calls.map(({ step }) => step), options: { ...request.options, ...shared } };
}

function toStep(
  item: unknown,
  common: UniversalRequest,
  parts: UniversalParts,
): { readonly step: Step; readonly own: CallOptions } {
  if (typeof item !== "object" || item === null) throw malformed("must be an object");
  const { gateway, traceparent, isAuthenticated } = common;
  const given = item as Record<string, unknown>;
  const { provider: slug, endpoint, query } = given;
  if (typeof slug !== "string") throw malformed("provider must be a string");
  const provider = slug === COMPAT ? null : parts.providers.find(gateway.accountId, slug);
  if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
  if (typeof endpoint !== "string") throw malformed("endpoint must be a string");
  const [path, search] = splitEndpoint(endpoint);
  checkProviderPath(path);
  refuseOwnTokenInTarget(parts.authenticator, path, search);
  const rawHeaders = universalHeaders(given["headers"]);
  const forwarded = readForwardedHeaders(
    rawHeaders,
    undefined,
    provider?.credentialHeaders ?? ["authorization"],
    parts.authenticator,
  );
  const options = { ...common.options, ...stepConfigOptions(given["config"]), ...forwarded.options };
  const body: RequestBody = { kind: "whole", bytes: universalJson(query ?? {}) };
  const request = toModelRequest({ ...common, path, query, search, forwarded, body, options }, parts.clock);
  const target = request === null ? null : targetOf(parts.modelNames, request, provider);
  const own = forwarded.options;
  if (request !== null && target !== null) return { step: planModelStep(parts, request, target), own };
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
    translation: null,
    facts: null,
    isAuthenticated,
  });
  return { step, own };
}

/** V8 parses JSON in a loop but writes it recursively, so a deeply nested value that was parsed may not be writable. */
export function universalJson(value: unknown): Buffer {
  try {
    return Buffer.from(JSON.stringify(value));
  } catch (error) {
    if (error instanceof RangeError) throw malformed("query is nested too deeply");
    throw error;
  }
}

export function splitEndpoint(endpoint: string): [string, string] {
  const trimmed = endpoint.replace(/^\/+/, "");
  if (!/^[\x21-\x7e]*$/.test(trimmed) || trimmed.includes("#")) {
    throw malformed("endpoint must be a path in printable ASCII");
  }
  const question = trimmed.indexOf("?");
  return question === -1 ? [trimmed, ""] : [trimmed.slice(0, question), trimmed.slice(question + 1)];
}

/** The headers of a step as a request would carry them: name, value, name, value, …; names in lower case, `content-type` first. */
export function universalHeaders(given: unknown): string[] {
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

/**
 * One step of the universal endpoint: a provider, an endpoint, headers and the JSON to send. It goes to its provider as it is. A step whose
 * provider does not speak the dialect that the endpoint names, and a step whose model names the provider (`compat`), is a request for a model.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { ModelNames } from "../models/model-names.ts";
import type { ModelTarget } from "../models/model-target.ts";
import type { Provider } from "../providers/provider.ts";
import type { CallShare } from "../step/call-share.ts";
import type { CallOptions } from "../step/call-options.ts";
import { malformed } from "../step/malformed.ts";
import type { Step } from "../step/step.ts";
import {
  checkProviderPath,
  type ForwardedHeaders,
  refuseOwnTokenInTarget,
  type RootTokenCheck,
} from "./forwarded-request.ts";
import type { ModelRequest } from "./model-request.ts";
import { planModelStep } from "./plan-model-step.ts";
import { planStep, type StepParts } from "./plan-step.ts";
import type { StepContext } from "./step-request.ts";

export interface UniversalParts extends StepParts {
  readonly modelNames: ModelNames;
  readonly authenticator: RootTokenCheck;
}

/** A call of the universal endpoint, apart from its body. */
export interface UniversalCall {
  readonly context: StepContext;
  /** Those of the request. */
  readonly options: CallOptions;
  readonly share: CallShare;
}

/** A step as it was sent. */
export interface SentStep {
  readonly path: string;
  readonly search: string;
  /** As a request would carry them: name, value, name, value, …; names in lower case, `content-type` first. */
  readonly headers: readonly string[];
  /** The body as a value. */
  readonly query: unknown;
}

/** Who gets a step. */
interface Receiver {
  /** Null for `compat`, where the model decides. */
  readonly provider: Provider | null;
  /** The model that a route has chosen; null for other steps. */
  readonly target: ModelTarget | null;
}

/** Stands for the provider that the model names. */
export const COMPAT = "compat";

/** RFC 9110, section 5: a token, and visible characters without line breaks. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The paths of calls of models in each dialect. */
export const MODEL_ENDPOINTS: ReadonlyMap<string, ModelRequest["endpoint"]> = new Map([
  ["chat/completions", "chat"],
  ["responses", "responses"],
  ["messages", "messages"],
  ["embeddings", "embeddings"],
]);
const VERSION = "v1/";

export function parseSentStep(
  { endpoint, headers, query }: Readonly<Record<string, unknown>>,
  root: RootTokenCheck,
): SentStep {
  if (typeof endpoint !== "string") throw malformed("endpoint must be a string");
  const [path, search] = splitEndpoint(endpoint);
  checkProviderPath(path);
  refuseOwnTokenInTarget(root, path, search);
  return { path, search, headers: toHeaders(headers), query };
}

/** `forwarded` has the options of the step, with those of the request. */
export function planUniversalStep(
  parts: UniversalParts,
  { context, share }: UniversalCall,
  sent: SentStep,
  { provider, target }: Receiver,
  forwarded: ForwardedHeaders,
): Step {
  const { path, search, headers, query } = sent;
  const { options } = forwarded;
  const body: RequestBody = { kind: "whole", bytes: toJson(query ?? {}) };
  const endpoint = MODEL_ENDPOINTS.get(path.startsWith(VERSION) ? path.slice(VERSION.length) : path);
  if (endpoint !== undefined && typeof query === "object" && query !== null) {
    const fields = query as Readonly<Record<string, unknown>>;
    const request: ModelRequest = {
      context,
      endpoint,
      body,
      fields: () => fields,
      isStream: fields["stream"] === true,
      query: search,
      forwarded,
      options,
      share,
      earlier: null,
    };
    const found = target ?? findTarget(parts.modelNames, request, provider);
    if (found !== null) return planModelStep(parts, request, found);
  }
  if (provider === null) throw malformed(`${COMPAT} has no endpoint ${path.slice(0, 64)}`);
  return planStep(parts, {
    context,
    provider,
    method: "POST",
    path,
    query: search,
    forwarded,
    contentType: headers[1],
    body,
    options: { ...options, ...target?.options },
  });
}

/** The model of a step; null when its provider takes the call as it is. */
function findTarget(
  names: ModelNames,
  { context, endpoint, fields }: ModelRequest,
  provider: Provider | null,
): ModelTarget | null {
  const { model } = fields();
  if (typeof model !== "string" || model === "") return null;
  if (provider !== null) {
    return speaks(provider, model, endpoint) ? null : { provider, model, isExplicit: true };
  }
  const named = names.resolve(context.gateway.accountId, model);
  if (named.kind === "model") return named;
  throw new SignalboxError("gateway_malformed_request", { message: "A dynamic route must be the only step" });
}

function speaks(provider: Provider, model: string, endpoint: ModelRequest["endpoint"]): boolean {
  const { calls, embeddings } = provider.apisFor(model);
  if (endpoint === "embeddings") return embeddings?.dialect !== "gemini";
  // A provider without an API for conversations judges the call itself.
  return calls.length === 0 || calls.some(({ dialect }) => dialect === endpoint);
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

function toHeaders(given: unknown): string[] {
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

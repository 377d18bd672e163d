/**
 * Parses the body of the universal endpoint: an array of steps, or one step. A step's headers take precedence over its `config`, then the
 * request's headers, then the gateway's settings. What concerns the whole call is taken from the first step: clients of the hosted original
 * repeat it in the headers of every step.
 */
import { SignalboxError } from "@signalbox/protocol";
import { type CallOptions, stepConfigOptions } from "../step/call-options.ts";
import { parseJson } from "../step/json-body.ts";
import { malformed } from "../step/malformed.ts";
import type { Step } from "../step/step.ts";
import { readForwardedHeaders } from "./forwarded-request.ts";
import {
  COMPAT,
  parseSentStep,
  planUniversalStep,
  type UniversalCall,
  type UniversalParts,
} from "./universal-step.ts";

const MAX_STEPS = 20;

interface UniversalSteps {
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

export function parseUniversalSteps(
  bytes: Buffer,
  call: UniversalCall,
  parts: UniversalParts,
): UniversalSteps {
  const items = toItems(bytes);
  if (items.length === 0 || items.length > MAX_STEPS) {
    throw malformed(`The body must be an array of 1 to ${MAX_STEPS} steps`);
  }
  const planned = items.map((item, i) => {
    try {
      return toStep(item, call, parts);
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error;
      throw new SignalboxError(error.id, { message: `step ${i}: ${error.message}` });
    }
  });
  const first = planned[0]?.own ?? {};
  const shared = Object.fromEntries(
    OF_THE_CALL.flatMap((name) => (first[name] === undefined ? [] : [[name, first[name]]])),
  ) as CallOptions;
  const guardrails = [call.options, ...planned.map(({ own }) => own)].flatMap((one) => one.guardrails ?? []);
  return {
    steps: planned.map(({ step }) => step),
    options: {
      ...call.options,
      ...shared,
      // A step cannot take back what the request or another step asks for.
      ...(guardrails.length === 0 ? {} : { guardrails: guardrails.join(",") }),
    },
  };
}

/** The steps of a body. */
export function toItems(bytes: Buffer): unknown[] {
  const value = parseJson(bytes);
  return Array.isArray(value) ? value : [value];
}

function toStep(
  item: unknown,
  call: UniversalCall,
  parts: UniversalParts,
): { readonly step: Step; readonly own: CallOptions } {
  if (typeof item !== "object" || item === null) throw malformed("must be an object");
  const given = item as Readonly<Record<string, unknown>>;
  const slug = given["provider"];
  if (typeof slug !== "string") throw malformed("provider must be a string");
  const provider = slug === COMPAT ? null : parts.providers.find(call.context.gateway.accountId, slug);
  if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
  const sent = parseSentStep(given, parts.authenticator);
  const forwarded = readForwardedHeaders(
    sent.headers,
    undefined,
    provider?.credentialHeaders ?? ["authorization"],
    parts.authenticator,
  );
  const options = { ...call.options, ...stepConfigOptions(given["config"]), ...forwarded.options };
  const receiver = { provider, target: null };
  const step = planUniversalStep(parts, call, sent, receiver, { ...forwarded, options });
  return { step, own: forwarded.options };
}

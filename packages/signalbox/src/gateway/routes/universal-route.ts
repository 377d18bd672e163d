/** A dynamic route called through the universal endpoint: one step with the provider `compat` and the model `dynamic/{name}`. */
import type { Arrival, CallPlan } from "../call/call-start.ts";
import { ROUTE_PREFIX } from "../models/model-names.ts";
import { KEY_HEADERS, NO_CREDENTIAL, readForwardedHeaders } from "../plan/forwarded-request.ts";
import {
  COMPAT,
  parseSentStep,
  planUniversalStep,
  type UniversalCall,
  type UniversalParts,
} from "../plan/universal-step.ts";
import { toItems } from "../plan/universal-steps.ts";
import { malformed } from "../step/malformed.ts";
import type { RouteResolver } from "./resolve-route.ts";

/** Null when the body does not call a route. */
export function planUniversalRoute(
  resolver: RouteResolver,
  parts: UniversalParts,
  arrival: Arrival,
  call: UniversalCall,
  bytes: Buffer,
): CallPlan | Promise<CallPlan> | null {
  // Most bodies do not contain the word, and are parsed elsewhere.
  if (!bytes.includes(ROUTE_PREFIX)) return null;
  const items = toItems(bytes);
  const item = items.find(isRouteStep);
  if (item === undefined) return null;
  if (items.length > 1) throw malformed("A dynamic route must be the only step");
  const { query } = item;
  if (typeof item["endpoint"] !== "string") throw malformed("step 0: endpoint must be a string");
  const sent = parseSentStep(item, parts.authenticator);
  const routed = {
    name: query.model.slice(ROUTE_PREFIX.length),
    options: call.options,
    body: () => query,
    bytes: bytes.length,
  };
  return resolver.resolveRoute(arrival, routed, (target) => {
    const { provider, model } = target;
    const forwarded = readForwardedHeaders(
      sent.headers,
      undefined,
      [...KEY_HEADERS, ...provider.credentialHeaders],
      parts.authenticator,
    );
    const named = { ...sent, query: { ...query, model } };
    const options = { ...call.options, ...forwarded.options };
    // A route decides which provider gets the call, so the caller's credential, which is for one of them, goes to none.
    const sendable = { headers: forwarded.headers, credential: NO_CREDENTIAL, options };
    return planUniversalStep(parts, call, named, { provider, target }, sendable);
  });
}

interface RouteStep extends Readonly<Record<string, unknown>> {
  readonly query: { readonly model: string };
}

function isRouteStep(item: unknown): item is RouteStep {
  if (typeof item !== "object" || item === null) return false;
  const { provider, query } = item as { provider?: unknown; query?: unknown };
  if (provider !== COMPAT || typeof query !== "object" || query === null) return false;
  const { model } = query as { model?: unknown };
  return typeof model === "string" && model.startsWith(ROUTE_PREFIX);
}

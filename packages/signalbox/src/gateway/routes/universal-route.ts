/** A dynamic route called through the universal endpoint: one step with the provider `compat` and the model `dynamic/{name}`. */
import type { HttpRequest } from "../../engines/http-server/index.ts";
import type { Caller } from "../keys/caller-token.ts";
import { requireAllowedStep } from "../keys/policy-use.ts";
import {
  checkProviderPath,
  readForwardedHeaders,
  refuseOwnTokenInTarget,
} from "../plan/forwarded-request.ts";
import { planModelStep } from "../plan/plan-model-step.ts";
import { malformed } from "../step/malformed.ts";
import { planStep } from "../plan/plan-step.ts";
import { COMPAT, toModelRequest } from "../plan/universal-door.ts";
import {
  splitEndpoint,
  type UniversalParts,
  universalHeaders,
  universalJson,
  type UniversalRequest,
} from "../plan/universal-steps.ts";
import { sessionOf } from "./order-steps.ts";
import { ROUTE_PREFIX, type RoutedCall, type RouteResolver } from "./resolve-route.ts";

const BYTES_PER_TOKEN = 4;
/**
 * A route decides which provider gets the call, so the caller's credential, which is for one of them, goes to none: the providers' stored keys
 * are used.
 */
const CREDENTIAL_HEADERS = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

export interface UniversalRouteRequest extends UniversalRequest {
  readonly bytes: Buffer;
  readonly request: HttpRequest;
  readonly caller: Caller;
}

/** Null when the body does not call a route. */
export function planUniversalRoute(
  resolver: RouteResolver,
  parts: UniversalParts,
  { bytes, request, caller, ...common }: UniversalRouteRequest,
): RoutedCall | Promise<RoutedCall> | null {
  const { gateway, options } = common;
  // Most bodies do not contain the word, and are parsed elsewhere.
  if (!bytes.includes(ROUTE_PREFIX)) return null;
  const items = toItems(bytes);
  const calls = items.filter(isRouteCall);
  const [call] = calls;
  if (call === undefined) return null;
  if (items.length > 1) throw malformed("A dynamic route must be the only step");
  const { endpoint, query, headers } = call;
  if (typeof endpoint !== "string") throw malformed("step 0: endpoint must be a string");
  const [path, search] = splitEndpoint(endpoint);
  checkProviderPath(path);
  refuseOwnTokenInTarget(parts.authenticator, path, search);
  const rawHeaders = universalHeaders(headers);
  const metadata =
    options.metadata === undefined ? null : (JSON.parse(options.metadata) as Record<string, unknown>);
  return resolver.resolveRoute(
    gateway,
    query.model.slice(ROUTE_PREFIX.length),
    {
      metadata,
      body: () => query,
      header: (name) => {
        const value = request.headers[name];
        return Array.isArray(value) ? value.join(", ") : value;
      },
      token: caller.tokenId === null ? null : { id: caller.tokenId },
      tokensEstimate: () => Math.ceil(bytes.length / BYTES_PER_TOKEN),
      session: sessionOf(options),
    },
    (target) => {
      const { provider } = target;
      const forwarded = readForwardedHeaders(
        rawHeaders,
        undefined,
        [...CREDENTIAL_HEADERS, ...provider.credentialHeaders],
        parts.authenticator,
      );
      const body = { kind: "whole" as const, bytes: universalJson({ ...query, model: target.model }) };
      const step = {
        ...common,
        path,
        forwarded: { ...forwarded, credential: [] },
        body,
        options: { ...options, ...forwarded.options, ...target.options },
      };
      const call = toModelRequest({ ...step, query, search }, parts.clock);
      const planned =
        call === null
          ? planStep(parts, {
              ...step,
              provider,
              method: "POST",
              query: search,
              contentType: rawHeaders[1],
              isEncoded: false,
              translation: null,
              facts: null,
            })
          : planModelStep(parts, call, { ...target, isExplicit: false });
      if (caller.token?.policy != null) requireAllowedStep(caller.token.policy, planned);
      return planned;
    },
  );
}

interface RouteCall {
  readonly endpoint?: unknown;
  readonly headers?: unknown;
  readonly query: { readonly model: string };
}

function toItems(bytes: Buffer): unknown[] {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return Array.isArray(value) ? value : [value];
  } catch {
    throw malformed("The body is not valid JSON");
  }
}

function isRouteCall(item: unknown): item is RouteCall {
  if (typeof item !== "object" || item === null) return false;
  const { provider, query } = item as { provider?: unknown; query?: unknown };
  if (provider !== COMPAT || typeof query !== "object" || query === null) return false;
  const { model } = query as { model?: unknown };
  return typeof model === "string" && model.startsWith(ROUTE_PREFIX);
}

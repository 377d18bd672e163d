/** Decides from the head of a handshake whether there may be a session, with which provider, and with what request. Throws the refusal. */
import { SignalboxError } from "@signalbox/protocol";
import type { Authenticator } from "../../accounts/index.ts";
import { ulid } from "../../core/ulid.ts";
import type { HttpRequest } from "../../engines/http-server/index.ts";
import { NO_BODY } from "../../engines/relay/index.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { logDetailOf } from "../call/call-record.ts";
import { findGateway } from "../door/arrive.ts";
import { type Caller, identifyCaller } from "../keys/caller-token.ts";
import { limitsModels, requireAllowedKind, requireAllowedModels, stampOptions } from "../keys/policy-use.ts";
import type { ModelNames } from "../models/model-names.ts";
import { readForwardedHeaders, refuseOwnTokenInTarget } from "../plan/forwarded-request.ts";
import { malformed } from "../step/malformed.ts";
import { NO_FACTS } from "../step/body-facts.ts";
import { planStep, type StepParts } from "../plan/plan-step.ts";
import type { Step } from "../step/step.ts";
import type { Provider } from "../providers/provider.ts";
import { stepContextOf } from "../plan/step-request.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import type { SessionDialect } from "./message.ts";
import { parseRealtimePath, PROVIDER_ALIASES, type RealtimePath } from "./realtime-path.ts";
import { dialectOf } from "./session-dialect.ts";
import type { SessionStart } from "./session-record.ts";
import { type SortedSubprotocols, sortSubprotocols } from "./subprotocols.ts";

export interface AdmissionParts extends StepParts {
  readonly gateways: Gateways;
  readonly authenticator: Authenticator;
  readonly modelNames: ModelNames;
}

/** A handshake whose gateway and caller are known. */
export interface Admitted {
  readonly gateway: Gateway;
  readonly caller: Caller;
  readonly step: Step;
  readonly dialect: SessionDialect;
  readonly protocols: SortedSubprotocols;
  readonly start: SessionStart;
}

interface Target {
  readonly provider: Provider;
  /** Empty when the query names none. */
  readonly model: string;
  readonly query: string;
}

/** The name of the model decides about the provider; without one, the protocol's inventor. */
const DEFAULT_MODEL = "gpt-realtime";
export function admitSession(parts: AdmissionParts, request: HttpRequest, context: RequestContext): Admitted {
  const startedAt = performance.now();
  const { gateways, authenticator, clock } = parts;
  const path = parseRealtimePath(context.path);
  const gateway = findGateway(gateways, path, request);
  const caller = identifyCaller(authenticator, gateway, request, context.query);
  const protocols = sortSubprotocols(request.headers["sec-websocket-protocol"]);
  const target = findTarget(parts, path, gateway, caller.query);
  const { provider, model } = target;
  refuseOwnTokenInTarget(authenticator, path.path, target.query);
  for (const protocol of protocols.offered) refuseOwnTokenInTarget(authenticator, protocol, "");
  const forwarded = readForwardedHeaders(
    [...request.rawHeaders, ...protocols.headers],
    request.headers.connection,
    provider.credentialHeaders,
    authenticator,
    caller.text,
  );
  const policy = caller.token?.policy ?? null;
  const options = stampOptions(policy, forwarded.options);
  const dialect = dialectOf(path.path);
  const slug = provider.slug.toLowerCase();
  if (policy !== null) {
    requireAllowedKind(policy, slug, dialect.kind);
    // A known dialect names its model in a message, which is checked when it arrives.
    const isCertain = dialect.isKnown || model !== "";
    if (limitsModels(policy, slug))
      requireAllowedModels(policy, slug, { names: model === "" ? [] : [model], isCertain });
  }
  if (provider.answer !== undefined) throw malformed(`${provider.slug} has no WebSockets`);
  const step = planStep(parts, {
    context: stepContextOf({ gateway, caller, request, context }),
    provider,
    method: "GET",
    path: path.path,
    query: target.query,
    forwarded,
    contentType: undefined,
    body: NO_BODY,
    options,
    facts: { ...NO_FACTS, model },
  });
  const createdAt = clock.now();
  const start: SessionStart = {
    id: ulid(createdAt),
    createdAt,
    startedAt,
    gateway,
    tokenId: caller.tokenId,
    options,
    provider: provider.slug,
    path: path.path,
    kind: dialect.kind,
    traceparent:
      typeof request.headers["traceparent"] === "string" ? request.headers["traceparent"] : undefined,
    userAgent: request.headers["user-agent"] ?? "",
    logDetail: logDetailOf({ options, gateway }),
  };
  return { gateway, caller, step, dialect, protocols, start };
}

/** The provider by the path, or by the name of the model; the query as the provider expects it. */
function findTarget(parts: AdmissionParts, path: RealtimePath, gateway: Gateway, query: string): Target {
  const { providers, modelNames } = parts;
  const parameters = new URLSearchParams(query);
  const named = parameters.getAll("model");
  if (named.length > 1) throw malformed("The query has several models");
  const [model = ""] = named;
  if (path.provider !== null) {
    const slug = path.provider;
    const provider =
      providers.find(gateway.accountId, slug) ??
      providers.find(gateway.accountId, PROVIDER_ALIASES.get(slug) ?? "");
    if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
    return { provider, model, query };
  }
  const found = modelNames.resolve(gateway.accountId, model === "" ? DEFAULT_MODEL : model);
  if (found.kind === "route") throw malformed("A dynamic route cannot serve a realtime session");
  if (model === "" || found.model === model) return { provider: found.provider, model, query };
  parameters.set("model", found.model);
  return { provider: found.provider, model: found.model, query: parameters.toString() };
}

/**
 * The unified doors: requests of a provider's SDK for models of any provider. The order of work is that of the other calls: path →
 * gateway → token → body → model → limits → cache → upstream.
 */
import { SignalboxError } from "@signalbox/protocol";
import { estimateInputTokens } from "@signalbox/translate";
import { type Authenticator, bearerText } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import { overloaded } from "../../core/overload.ts";
import type { SharedPlaces } from "../../core/shared-pool.ts";
import {
  type BodyLimits,
  hasBody,
  type HttpRequest,
  type HttpResponse,
  type MemoryBudget,
  type MemoryShare,
} from "../../engines/http-server/index.ts";
import { readMembers, type RequestBody } from "../../engines/relay/index.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { CallRunner } from "../call/call-runner.ts";
import { type Caller, holderOf, identifyCaller } from "../keys/caller-token.ts";
import { requireAllowedStep, stampOptions } from "../keys/policy-use.ts";
import type { ModelNames } from "../models/model-names.ts";
import type { ModelList } from "./model-list.ts";
import type { ModelTarget } from "../models/model-target.ts";
import { type ModelRequest, parseFields } from "../plan/model-request.ts";
import {
  type ForwardedHeaders,
  readForwardedHeaders,
  refuseOwnTokenInTarget,
} from "../plan/forwarded-request.ts";
import { planModelStep } from "../plan/plan-model-step.ts";
import { malformed } from "../step/malformed.ts";
import type { Step } from "../step/step.ts";
import type { StepParts } from "../plan/plan-step.ts";
import { planRunStep } from "../plan/plan-run-step.ts";
import { sessionOf } from "../routes/order-steps.ts";
import type { RoutedCall, RouteResolver } from "../routes/resolve-route.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import { toBodyError } from "./body-failure.ts";
import type { DoorPath } from "./door-path.ts";

export interface UnifiedDoorParts extends StepParts {
  readonly gateways: Gateways;
  readonly authenticator: Authenticator;
  readonly bodyLimits: Required<Omit<BodyLimits, "share">>;
  readonly memory: MemoryBudget;
  /** Calls under way. */
  readonly calls: SharedPlaces;
  readonly runner: CallRunner;
  readonly clock: Clock;
  readonly modelNames: ModelNames;
  readonly modelList: ModelList;
  readonly routes: RouteResolver;
}

/** One request of a door. */
export interface DoorCall {
  readonly path: DoorPath;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly context: RequestContext;
  readonly startedAt: number;
  readonly traceparent: string | null;
}

/** A call whose gateway and caller are known. */
interface Admitted extends DoorCall {
  readonly gateway: Gateway;
  readonly caller: Caller;
  readonly memory: MemoryShare;
}

/** The members that are needed before the body is parsed, if it ever is. */
const WANTED: ReadonlySet<string> = new Set(["model", "stream"]);
/** Where SDKs put their key. */
const KEY_HEADERS = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
const DEFAULT_GATEWAY = "default";
const MAX_MODEL_LENGTH = 512;
const BYTES_PER_TOKEN = 4;

/** Plans the step for one model. */
type PlanModel = (request: ModelRequest, target: ModelTarget) => Step;

export class UnifiedDoor {
  readonly #parts: UnifiedDoorParts;

  constructor(parts: UnifiedDoorParts) {
    this.#parts = parts;
  }

  async handle(call: DoorCall): Promise<void> {
    const { path, request, context } = call;
    context.errorDialect = path.errorDialect;
    if (path.endpoint === "models" && request.headers["anthropic-version"] !== undefined) {
      if (path.errorDialect === "openai") context.errorDialect = "anthropic";
    }
    const admitted = this.#admit(call);
    if (path.endpoint === "unknown") throw new SignalboxError("not_found");
    if (path.endpoint === "models") {
      this.#list(admitted);
      return;
    }
    if (request.method !== "POST") {
      throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
    }
    refuseOwnTokenInTarget(this.#parts.authenticator, "", admitted.caller.query);
    if (request.headers["content-encoding"] !== undefined) {
      throw malformed("Content-Encoding is not supported at this path; send the body uncompressed");
    }
    const body = await this.#readBody(admitted);
    if (path.endpoint === "count_tokens") await this.#countTokens(admitted, body);
    else if (path.endpoint === "run") await this.#serveRun(admitted, body);
    else await this.#serveCall(admitted, path.endpoint, body);
  }

  #admit(call: DoorCall): Admitted {
    const { path, request, context } = call;
    const { headers } = request;
    const named = path.gatewayId ?? headers["gw-aig-gateway-id"] ?? headers["cf-aig-gateway-id"];
    const gateway = this.#parts.gateways.find(
      path.accountId,
      typeof named === "string" ? named : DEFAULT_GATEWAY,
    );
    if (gateway === undefined) throw new SignalboxError("gateway_not_found");
    // SDKs show the message to their users; the gateway's own format has a fixed one.
    const mayExplain = context.errorDialect === "openai" || context.errorDialect === "anthropic";
    const caller = identifyCaller(this.#parts.authenticator, gateway, request, context.query, mayExplain);
    const holder = holderOf(caller, gateway);
    if (!context.memory.occupy(this.#parts.calls.shareOf(holder))) throw overloaded();
    return { ...call, gateway, caller, memory: this.#parts.memory.shareOf(holder) };
  }

  #list({ path, request, response, context, gateway, caller }: Admitted): void {
    if (request.method !== "GET" && request.method !== "HEAD") {
      throw new SignalboxError("method_not_allowed", { headers: { allow: "GET, HEAD" } });
    }
    const isAnthropic = request.headers["anthropic-version"] !== undefined;
    const { credential, options } = this.#readHeaders(request, caller);
    const answer = this.#parts.modelList.answer(gateway, {
      model: path.model,
      isAnthropic,
      query: new URLSearchParams(context.query),
      caller: {
        policy: caller.token?.policy ?? null,
        isAuthenticated: caller.isAuthenticated,
        hasOwnKey: credential.length > 0,
        keyAlias: options.keyAlias,
      },
    });
    sendJson(response, answer);
  }

  async #serveCall(call: Admitted, endpoint: ModelRequest["endpoint"], body: RequestBody): Promise<void> {
    const { model, isStream } = readHead(body);
    const request = this.#toModelRequest(call, endpoint, body, isStream);
    await this.#run(call, request, model, (own, target) => planModelStep(this.#parts, own, target));
  }

  async #serveRun(call: Admitted, body: RequestBody): Promise<void> {
    const request = this.#toModelRequest(call, "chat", body, false);
    const { model, input } = readRun(call.path.model, request.fields());
    await this.#run(call, request, model, (own, target) => planRunStep(this.#parts, own, target, input));
  }

  #toModelRequest(
    { gateway, request, context, caller, traceparent, memory }: Admitted,
    endpoint: ModelRequest["endpoint"],
    body: RequestBody,
    isStream: boolean,
  ): ModelRequest {
    const { clock, bodyLimits } = this.#parts;
    const forwarded = this.#readHeaders(request, caller);
    const [header, value = ""] = forwarded.credential;
    const holdMemory = (bytes: number) => context.memory.hold(memory, bytes);
    let fields: Record<string, unknown> | undefined;
    return {
      gateway,
      endpoint,
      body,
      isStream,
      query: caller.query,
      headers: forwarded.headers,
      credential: header === undefined ? null : { header, value, key: bearerText(value) ?? value },
      isAuthenticated: caller.isAuthenticated,
      traceparent,
      options: stampOptions(caller.token?.policy ?? null, forwarded.options),
      now: clock.now(),
      holdMemory,
      fields: () => {
        if (fields !== undefined) return fields;
        if (body.kind !== "whole") throw tooLarge(bodyLimits.keepBytes);
        // The parsed body and what is made of it are in memory beside the bytes.
        if (!holdMemory(body.bytes.length)) {
          throw toBodyError("no_room", bodyLimits.keepBytes);
        }
        return (fields = parseFields(body.bytes));
      },
    };
  }

  #readHeaders({ rawHeaders, headers }: HttpRequest, { text }: Caller): ForwardedHeaders {
    return readForwardedHeaders(rawHeaders, headers.connection, KEY_HEADERS, this.#parts.authenticator, text);
  }

  /** Runs the call with the model that the name means, or with the models of a route. */
  async #run(call: Admitted, modelRequest: ModelRequest, model: string, plan: PlanModel): Promise<void> {
    const { request, response, context, gateway, caller, startedAt, memory } = call;
    const policy = caller.token?.policy ?? null;
    const planAllowed: PlanModel = (own, target) => {
      const step = plan(own, target);
      if (policy !== null) requireAllowedStep(policy, step);
      return step;
    };
    const named = this.#parts.modelNames.resolve(gateway.accountId, model);
    const found: RoutedCall | Promise<RoutedCall> =
      named.kind === "model"
        ? { steps: [planAllowed(modelRequest, named)] }
        : this.#planRoute(call, modelRequest, named.name, planAllowed);
    const planned = found instanceof Promise ? await found : found;
    await this.#parts.runner.run({
      ...planned,
      showsStep: named.kind === "route",
      options: modelRequest.options,
      gateway,
      request,
      response,
      requestId: context.id,
      errorDialect: context.errorDialect ?? "gateway",
      tokenId: caller.tokenId,
      token: caller.token,
      startedAt,
      memory,
    });
  }

  #planRoute(
    { request, gateway, caller }: Admitted,
    call: ModelRequest,
    name: string,
    plan: PlanModel,
  ): RoutedCall | Promise<RoutedCall> {
    const { body, options, fields } = call;
    const bytes = body.kind === "whole" ? body.bytes.length : 0;
    // A route decides which provider gets the call, so the caller's key, which is for one of them, goes to none.
    const own = { ...call, credential: null };
    return this.#parts.routes.resolveRoute(
      gateway,
      name,
      {
        metadata:
          options.metadata === undefined ? null : (JSON.parse(options.metadata) as Record<string, unknown>),
        body: fields,
        header: (header) => {
          const value = request.headers[header];
          return Array.isArray(value) ? value.join(", ") : value;
        },
        token: caller.tokenId === null ? null : { id: caller.tokenId },
        tokensEstimate: () => Math.ceil(bytes / BYTES_PER_TOKEN),
        session: sessionOf(options),
      },
      (target) => plan(own, { ...target, isExplicit: false }),
    );
  }

  /** Anthropic counts; for all other models the gateway estimates. An estimate is no call: it has no row and no cost. */
  async #countTokens(call: Admitted, body: RequestBody): Promise<void> {
    const { model } = readHead(body);
    const request = this.#toModelRequest(call, "messages", body, false);
    const named = this.#parts.modelNames.resolve(call.gateway.accountId, model);
    const path = named.kind === "route" ? null : named.provider.apisFor(named.model).countTokens;
    if (path === null) {
      sendJson(call.response, { input_tokens: estimateInputTokens("messages", request.fields()) });
      return;
    }
    await this.#run(call, { ...request, path }, model, (own, target) =>
      planModelStep(this.#parts, own, target),
    );
  }

  #readBody({ request, response, context, memory }: Admitted): Promise<RequestBody> {
    const { bodyLimits, runner } = this.#parts;
    if (!hasBody(request)) throw malformed("The body is empty");
    return new Promise((resolve, reject) => {
      let isRead = false;
      context.receiveBody(
        { ...bodyLimits, share: memory },
        {
          onBody(body) {
            isRead = true;
            resolve(body);
          },
          onFailure(failure) {
            const error = toBodyError(failure, bodyLimits.maxBytes);
            // A streamed body that exceeds its limit ends the call that is under way.
            if (isRead) runner.refuse(response, error);
            else reject(error);
          },
        },
      );
    });
  }
}

/** Model and stream flag, from the bytes: a body whose dialect the provider speaks is parsed no more often than other calls' bodies. */
function readHead(body: RequestBody): { readonly model: string; readonly isStream: boolean } {
  if (body.kind === "none") throw malformed("The body is empty");
  const members = readMembers(body.kind === "whole" ? body.bytes : body.start, WANTED);
  return { model: checkModel(members.get("model")), isStream: members.get("stream") === true };
}

/** The body of `ai/run`: `{model, input}`, or the input alone when the path names the model. */
function readRun(
  modelInPath: string | null,
  fields: Readonly<Record<string, unknown>>,
): { readonly model: string; readonly input: Readonly<Record<string, unknown>> } {
  if (modelInPath !== null) return { model: checkModel(modelInPath), input: fields };
  const { model, input } = fields;
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw malformed("input is required and must be an object");
  }
  return { model: checkModel(model), input: input as Record<string, unknown> };
}

function checkModel(model: unknown): string {
  if (typeof model !== "string" || model === "" || model.length > MAX_MODEL_LENGTH) {
    throw new SignalboxError("gateway_malformed_request", {
      message: "model is required and must be a string",
      param: "model",
    });
  }
  return model;
}

function tooLarge(maxBytes: number): SignalboxError {
  return new SignalboxError("gateway_body_too_large", {
    message: `Request body too large to be translated (maximum ${maxBytes} bytes)`,
  });
}

function sendJson(response: HttpResponse, value: object): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(200, [
    "content-type",
    "application/json; charset=utf-8",
    "content-length",
    String(body.length),
  ]);
  response.end(body);
}

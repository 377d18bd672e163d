/**
 * The unified doors: requests of a provider's SDK for models of any provider. The order of work is that of the other calls: path →
 * gateway → token → body → model → limits → cache → upstream.
 */
import { SignalboxError } from "@signalbox/protocol";
import { estimateInputTokens } from "@signalbox/translate";
import { hasBody, type HttpResponse } from "../../engines/http-server/index.ts";
import { readMembers, type RequestBody } from "../../engines/relay/index.ts";
import { sha256 } from "../../core/secret.ts";
import type { Arrival, CallPlan } from "../call/call-start.ts";
import type { CallersAnswers, KeptAnswers } from "../exchange/kept-answers.ts";
import { requireAllowedStep, stampOptions } from "../keys/policy-use.ts";
import type { ModelNames } from "../models/model-names.ts";
import type { ModelTarget } from "../models/model-target.ts";
import {
  type ForwardedHeaders,
  KEY_HEADERS,
  NO_CREDENTIAL,
  readForwardedHeaders,
  refuseOwnTokenInTarget,
} from "../plan/forwarded-request.ts";
import type { ModelRequest } from "../plan/model-request.ts";
import { planModelStep } from "../plan/plan-model-step.ts";
import { planRunStep } from "../plan/plan-run-step.ts";
import type { StepParts } from "../plan/plan-step.ts";
import { stepContextOf } from "../plan/step-request.ts";
import type { RouteResolver } from "../routes/resolve-route.ts";
import { parseFields } from "../step/json-body.ts";
import { malformed } from "../step/malformed.ts";
import type { Step } from "../step/step.ts";
import { type ArrivalParts, arrive, type Incoming, requireMethod } from "./arrive.ts";
import { callerShare } from "./caller-share.ts";
import type { DoorPath } from "./door-path.ts";
import type { ModelList } from "./model-list.ts";
import { type BodyParts, receiveBody, toBodyError } from "./receive-body.ts";

export interface UnifiedDoorParts extends ArrivalParts, BodyParts, StepParts {
  readonly keptAnswers: KeptAnswers;
  readonly modelNames: ModelNames;
  readonly modelList: ModelList;
  readonly routes: RouteResolver;
}

/** The members that are needed before the body is parsed, if it ever is. */
const WANTED: ReadonlySet<string> = new Set(["model", "stream"]);
const MAX_MODEL_LENGTH = 512;

/** Plans the step for one model. */
type PlanModel = (request: ModelRequest, target: ModelTarget) => Step;

export class UnifiedDoor {
  readonly #parts: UnifiedDoorParts;

  constructor(parts: UnifiedDoorParts) {
    this.#parts = parts;
  }

  async handle(path: DoorPath, incoming: Incoming): Promise<void> {
    const { request, context } = incoming;
    context.errorDialect = path.errorDialect;
    if (path.endpoint === "models" && request.headers["anthropic-version"] !== undefined) {
      if (path.errorDialect === "openai") context.errorDialect = "anthropic";
    }
    // SDKs show the message to their users; the gateway's own format has a fixed one.
    const mayExplain = context.errorDialect === "openai" || context.errorDialect === "anthropic";
    const arrival = arrive(this.#parts, path, incoming, mayExplain);
    if (path.endpoint === "unknown") throw new SignalboxError("not_found");
    if (path.endpoint === "models") {
      this.#list(arrival, path.model);
      return;
    }
    requireMethod(request, "POST");
    refuseOwnTokenInTarget(this.#parts.authenticator, "", arrival.caller.query);
    if (request.headers["content-encoding"] !== undefined) {
      throw malformed("Content-Encoding is not supported at this path; send the body uncompressed");
    }
    if (!hasBody(request)) throw malformed("The body is empty");
    const body = await new Promise<RequestBody>((resolve, reject) => {
      receiveBody(this.#parts, arrival, resolve, reject);
    });
    if (path.endpoint === "count_tokens") await this.#countTokens(arrival, body);
    else if (path.endpoint === "run") await this.#serveRun(arrival, path.model, body);
    else await this.#serveCall(arrival, path.endpoint, body);
  }

  #list(arrival: Arrival, model: string | null): void {
    const { request, response, context, gateway, caller } = arrival;
    requireMethod(request, "GET", "HEAD");
    const { credential, options } = this.#readHeaders(arrival);
    const answer = this.#parts.modelList.answer(gateway, {
      model,
      isAnthropic: request.headers["anthropic-version"] !== undefined,
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

  async #serveCall(arrival: Arrival, endpoint: ModelRequest["endpoint"], body: RequestBody): Promise<void> {
    const { model, isStream } = readHead(body);
    const request = this.#toModelRequest(arrival, endpoint, body, isStream);
    await this.#run(arrival, request, model, (own, target) => planModelStep(this.#parts, own, target));
  }

  async #serveRun(arrival: Arrival, modelInPath: string | null, body: RequestBody): Promise<void> {
    const request = this.#toModelRequest(arrival, "chat", body, false);
    const { model, input } = readRun(modelInPath, request.fields());
    await this.#run(arrival, request, model, (own, target) => planRunStep(this.#parts, own, target, input));
  }

  #toModelRequest(
    arrival: Arrival,
    endpoint: ModelRequest["endpoint"],
    body: RequestBody,
    isStream: boolean,
  ): ModelRequest {
    const { caller } = arrival;
    const { keepBytes } = this.#parts.bodyLimits;
    const forwarded = this.#readHeaders(arrival);
    const share = callerShare(this.#parts, arrival);
    let fields: Record<string, unknown> | undefined;
    return {
      context: stepContextOf(arrival),
      endpoint,
      body,
      isStream,
      query: caller.query,
      forwarded,
      options: stampOptions(caller.token?.policy ?? null, forwarded.options),
      share,
      earlier: endpoint === "responses" ? this.#earlierOf(arrival, forwarded) : null,
      fields: () => {
        if (fields !== undefined) return fields;
        if (body.kind !== "whole") throw tooLarge(keepBytes);
        // The parsed body and what is made of it are in memory beside the bytes.
        if (!share.holdMemory(body.bytes.length)) throw toBodyError("no_room", keepBytes);
        return (fields = parseFields(body.bytes));
      },
    };
  }

  /** By token or, without one, by the key that the caller sends to the provider. */
  #earlierOf({ gateway, caller }: Arrival, { credential }: ForwardedHeaders): CallersAnswers | null {
    const who =
      caller.tokenId ?? (credential.length === 0 ? null : sha256(credential.join(" ")).toString("hex"));
    return who === null ? null : this.#parts.keptAnswers.of(`${gateway.accountId}/${gateway.id}/${who}`);
  }

  #readHeaders({ request: { rawHeaders, headers }, caller }: Arrival): ForwardedHeaders {
    const { authenticator } = this.#parts;
    return readForwardedHeaders(rawHeaders, headers.connection, KEY_HEADERS, authenticator, caller.text);
  }

  /** Runs the call with the model that the name means, or with the models of a route. */
  async #run(arrival: Arrival, request: ModelRequest, model: string, plan: PlanModel): Promise<void> {
    const named = this.#parts.modelNames.resolve(arrival.gateway.accountId, model);
    const found =
      named.kind === "route"
        ? this.#planRoute(arrival, request, named.name, plan)
        : planOne(arrival, request, named, plan);
    await this.#parts.runner.run({ ...arrival, ...(found instanceof Promise ? await found : found) });
  }

  #planRoute(
    arrival: Arrival,
    request: ModelRequest,
    name: string,
    plan: PlanModel,
  ): CallPlan | Promise<CallPlan> {
    const { body, options, fields, forwarded } = request;
    const bytes = body.kind === "whole" ? body.bytes.length : 0;
    // A route decides which provider gets the call, so the caller's key, which is for one of them, goes to none.
    const own = { ...request, forwarded: { ...forwarded, credential: NO_CREDENTIAL } };
    return this.#parts.routes.resolveRoute(arrival, { name, options, body: fields, bytes }, (target) =>
      plan(own, target),
    );
  }

  /** Anthropic counts; for all other models the gateway estimates. An estimate is no call: it has no row and no cost. */
  async #countTokens(arrival: Arrival, body: RequestBody): Promise<void> {
    const { model } = readHead(body);
    const request = this.#toModelRequest(arrival, "messages", body, false);
    const named = this.#parts.modelNames.resolve(arrival.gateway.accountId, model);
    const path = named.kind === "route" ? null : named.provider.apisFor(named.model).countTokens;
    if (path === null) {
      sendJson(arrival.response, { input_tokens: estimateInputTokens("messages", request.fields()) });
      return;
    }
    await this.#run(arrival, { ...request, path }, model, (own, target) =>
      planModelStep(this.#parts, own, target),
    );
  }
}

function planOne({ caller }: Arrival, request: ModelRequest, target: ModelTarget, plan: PlanModel): CallPlan {
  const step = plan(request, target);
  const policy = caller.token?.policy ?? null;
  if (policy !== null) requireAllowedStep(policy, step);
  return { options: request.options, steps: [step], showsStep: false };
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

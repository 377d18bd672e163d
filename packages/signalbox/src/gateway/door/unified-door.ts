/**
 * The unified doors: requests of a provider's SDK for models of any provider. The order of work is that of the other calls: path →
 * gateway → token → body → model → limits → cache → upstream.
 */
import { SignalboxError } from "@signalbox/protocol";
import { estimateInputTokens } from "@signalbox/translate";
import { hasBody } from "../../engines/http-server/index.ts";
import { readMembers, type RequestBody } from "../../engines/relay/index.ts";
import type { Arrival, CallPlan } from "../call/call-start.ts";
import { requireAllowedStep } from "../keys/policy-use.ts";
import { AUTO_ROUTE, type ModelNames } from "../models/model-names.ts";
import type { ModelTarget } from "../models/model-target.ts";
import {
  decodePath,
  type ForwardedHeaders,
  NO_CREDENTIAL,
  refuseOwnTokenInTarget,
} from "../plan/forwarded-request.ts";
import type { ModelRequest } from "../plan/model-request.ts";
import { checked, planModelStep } from "../plan/plan-model-step.ts";
import { type PassedRequest, planPassedStep, readPassedModel } from "../plan/plan-passed-step.ts";
import { planRunStep } from "../plan/plan-run-step.ts";
import type { StepParts } from "../plan/plan-step.ts";
import { stepContextOf } from "../plan/step-request.ts";
import type { AutoRouter } from "../routes/auto-router.ts";
import type { RouteResolver } from "../routes/resolve-route.ts";
import { parseFields } from "../step/json-body.ts";
import { malformed } from "../step/malformed.ts";
import { MAX_MODEL_LENGTH, toModelName } from "../step/model-name.ts";
import type { Step } from "../step/step.ts";
import { type ArrivalParts, arrive, type Incoming, requireMethod } from "./arrive.ts";
import { optionsOf, readCallerHeaders } from "./caller-headers.ts";
import { callerShare } from "../call/caller-share.ts";
import { DEFAULT_PROVIDER, type DoorPath } from "./door-path.ts";
import type { ModelList } from "./model-list.ts";
import { type BodyParts, receiveBody, toBodyError } from "./receive-body.ts";
import { sendJson } from "./send-json.ts";
import { hasResponses, type ServePlain, StoredObjects, type StoredObjectsParts } from "./stored-objects.ts";

export interface UnifiedDoorParts extends ArrivalParts, BodyParts, StepParts, StoredObjectsParts {
  readonly modelNames: ModelNames;
  readonly modelList: ModelList;
  readonly routes: RouteResolver;
  readonly autoRouter: AutoRouter;
}

/** The members that are needed before the body is parsed, if it ever is. */
const WANTED: ReadonlySet<string> = new Set(["model", "stream", "background"]);
const OPEN_BRACE = 0x7b;

/** A request whose model decides who gets it. */
type RoutedRequest = Pick<ModelRequest, "body" | "fields" | "forwarded" | "options">;

/** Plans the step for one model. */
type PlanModel<Request> = (request: Request, target: ModelTarget) => Step;

export class UnifiedDoor {
  readonly #parts: UnifiedDoorParts;
  readonly #stored: StoredObjects;

  constructor(parts: UnifiedDoorParts, servePlain: ServePlain) {
    this.#parts = parts;
    this.#stored = new StoredObjects(parts, servePlain);
  }

  /** Ends what runs in the background. */
  close(): void {
    this.#stored.close();
  }

  async handle(path: DoorPath, incoming: Incoming): Promise<void> {
    const { request, context } = incoming;
    context.errorDialect = path.errorDialect;
    if (path.endpoint === "models" && request.headers["anthropic-version"] !== undefined) {
      if (path.errorDialect === "openai") context.errorDialect = "anthropic";
    }
    // SDKs show the message to their users; the gateway's own format has a fixed one.
    const mayExplain = context.errorDialect !== "gateway" && context.errorDialect !== "run";
    const arrival = arrive(this.#parts, path, incoming, mayExplain);
    if (path.endpoint === "models") {
      this.#list(arrival, path);
      return;
    }
    if (path.endpoint === "stored") {
      await this.#stored.serve(arrival, path.rest);
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
    else if (path.endpoint === "gemini") await this.#serveGemini(arrival, path, body);
    else if (path.endpoint === "run") await this.#serveRun(arrival, path.model, body);
    else if (path.endpoint === "passed") await this.#servePassed(arrival, path.rest, body);
    else await this.#serveCall(arrival, path.endpoint, body);
  }

  #list(arrival: Arrival, { model, isGoogle }: DoorPath): void {
    const { request, response, context, gateway, caller } = arrival;
    requireMethod(request, "GET", "HEAD");
    const { credential, options } = readCallerHeaders(this.#parts, arrival);
    const answer = this.#parts.modelList.answer(gateway, {
      model,
      format: isGoogle ? "gemini" : request.headers["anthropic-version"] === undefined ? "chat" : "messages",
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
    const { model, isStream, isBackground } = readHead(body);
    const request = this.#toModelRequest(arrival, endpoint, body, isStream);
    const plan: PlanModel<ModelRequest> = (own, target) => planModelStep(this.#parts, own, target);
    if (endpoint !== "responses") return this.#run(arrival, request, model, plan);
    const named = this.#parts.modelNames.resolve(arrival.gateway.accountId, model);
    // A provider with the API keeps its answers itself.
    if (hasResponses(named)) return this.#run(arrival, request, model, plan);
    const whole = await this.#stored.gather(arrival, request);
    if (!isBackground) return this.#run(arrival, whole, model, plan);
    this.#stored.startInBackground(arrival, whole, (own) => {
      if (named.kind === "model") planOne(arrival, own, named, plan);
    });
  }

  /** Gemini's methods have the model and the choice of a stream in the path. */
  async #serveGemini(arrival: Arrival, { model, method }: DoorPath, body: RequestBody): Promise<void> {
    const name = checkModel(model);
    const isStream = method === "streamGenerateContent";
    const request = this.#toModelRequest(arrival, "gemini", body, isStream);
    if (method === "countTokens") await this.#countGemini(arrival, request, name);
    else {
      const own =
        method === "embedContent" || method === "batchEmbedContents"
          ? { ...request, embeds: method }
          : request;
      await this.#run(arrival, own, name, (one, target) => planModelStep(this.#parts, one, target));
    }
  }

  async #serveRun(arrival: Arrival, modelInPath: string | null, body: RequestBody): Promise<void> {
    const request = this.#toModelRequest(arrival, "chat", body, false);
    const { model, input } = readRun(modelInPath, request.fields());
    await this.#run(arrival, request, model, (own, target) => planRunStep(this.#parts, own, target, input));
  }

  /** The model names the provider, which gets the request as it is. */
  async #servePassed(arrival: Arrival, endpoint: string, body: RequestBody): Promise<void> {
    const { request, caller, gateway } = arrival;
    const forwarded = readCallerHeaders(this.#parts, arrival);
    const contentType = request.headers["content-type"];
    const model = readPassedModel(body, contentType, this.#parts.bodyLimits.keepBytes);
    const passed: PassedRequest = {
      context: stepContextOf(arrival),
      endpoint,
      contentType,
      body,
      fields: () =>
        body.kind === "whole" && body.bytes[0] === OPEN_BRACE ? parseFields(body.bytes) : { model },
      query: caller.query,
      forwarded,
      options: optionsOf(arrival, forwarded),
      namesModel: model !== null,
    };
    const plan: PlanModel<PassedRequest> = (own, target) => planPassedStep(this.#parts, own, target);
    if (model !== null) {
      await this.#run(arrival, passed, checkModel(model), plan);
      return;
    }
    const provider = this.#parts.providers.find(gateway.accountId, DEFAULT_PROVIDER);
    if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
    const call = planOne(arrival, passed, { provider, model: "", isExplicit: false }, plan);
    await this.#parts.runner.run({ ...arrival, ...call });
  }

  #toModelRequest(
    arrival: Arrival,
    endpoint: ModelRequest["endpoint"],
    body: RequestBody,
    isStream: boolean,
  ): ModelRequest {
    const { keepBytes } = this.#parts.bodyLimits;
    const { forwarded, query } =
      endpoint === "gemini"
        ? takeQueryKey(readCallerHeaders(this.#parts, arrival), arrival.caller.query)
        : { forwarded: readCallerHeaders(this.#parts, arrival), query: arrival.caller.query };
    const share = callerShare(this.#parts, arrival);
    let fields: Record<string, unknown> | undefined;
    return {
      context: stepContextOf(arrival),
      endpoint,
      body,
      isStream,
      query,
      forwarded,
      options: optionsOf(arrival, forwarded),
      share,
      earlier: endpoint === "responses" ? this.#stored.answersOf(arrival, forwarded) : null,
      fields: () => {
        if (fields !== undefined) return fields;
        if (body.kind !== "whole") throw tooLarge(keepBytes);
        // The parsed body and what is made of it are in memory beside the bytes.
        if (!share.holdMemory(body.bytes.length)) throw toBodyError("no_room", keepBytes);
        return (fields = parseFields(body.bytes));
      },
    };
  }

  /** Runs the call with the model that the name means, or with the models of a route. */
  async #run<Request extends RoutedRequest>(
    arrival: Arrival,
    request: Request,
    model: string,
    plan: PlanModel<Request>,
  ): Promise<void> {
    const named = this.#parts.modelNames.resolve(arrival.gateway.accountId, model);
    const found =
      named.kind === "route"
        ? this.#planRoute(arrival, request, named.name, plan)
        : planOne(arrival, request, named, plan);
    await this.#parts.runner.run({ ...arrival, ...(found instanceof Promise ? await found : found) });
  }

  #planRoute<Request extends RoutedRequest>(
    arrival: Arrival,
    request: Request,
    name: string,
    plan: PlanModel<Request>,
  ): CallPlan | Promise<CallPlan> {
    const { body, options, fields, forwarded } = request;
    const bytes = body.kind === "whole" ? body.bytes.length : 0;
    // A route decides which provider gets the call, so the caller's key, which is for one of them, goes to none.
    const own = { ...request, forwarded: { ...forwarded, credential: NO_CREDENTIAL } };
    if (name === AUTO_ROUTE) {
      return this.#parts.autoRouter.plan(arrival, { options, fields, body }, (target) => plan(own, target));
    }
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
      sendJson(arrival.response, {
        input_tokens: checked(() => estimateInputTokens("messages", request.fields())),
      });
      return;
    }
    await this.#run(arrival, { ...request, path }, model, (own, target) =>
      planModelStep(this.#parts, own, target),
    );
  }

  /** Google counts for its own models. */
  async #countGemini(arrival: Arrival, request: ModelRequest, model: string): Promise<void> {
    const named = this.#parts.modelNames.resolve(arrival.gateway.accountId, model);
    const api =
      named.kind === "route"
        ? undefined
        : named.provider.apisFor(named.model).calls.find(({ dialect }) => dialect === "gemini");
    if (named.kind === "route" || api === undefined) {
      const { generateContentRequest: whole } = request.fields();
      const totalTokens = checked(() => estimateInputTokens("gemini", whole ?? request.fields()));
      sendJson(arrival.response, { totalTokens });
      return;
    }
    const path = api
      .path(encodeURIComponent(named.model), false)
      .replace(/:generateContent$/, ":countTokens");
    await this.#run(arrival, { ...request, path }, model, (own, target) =>
      planModelStep(this.#parts, own, target),
    );
  }
}

/** Google's clients may send their key in the query, from where it could go to another provider. */
function takeQueryKey(
  forwarded: ForwardedHeaders,
  query: string,
): { readonly forwarded: ForwardedHeaders; readonly query: string } {
  if (!query.includes("key=")) return { forwarded, query };
  const pairs = query.split("&");
  const key = pairs.find((pair) => pair.startsWith("key="))?.slice(4);
  const rest = pairs.filter((pair) => !pair.startsWith("key=")).join("&");
  if (key === undefined || forwarded.credential.length > 0) return { forwarded, query: rest };
  return { forwarded: { ...forwarded, credential: ["x-goog-api-key", decodePath(key)] }, query: rest };
}

function planOne<Request extends RoutedRequest>(
  { caller }: Arrival,
  request: Request,
  target: ModelTarget,
  plan: PlanModel<Request>,
): CallPlan {
  const step = plan(request, target);
  const policy = caller.token?.policy ?? null;
  if (policy !== null) requireAllowedStep(policy, step);
  return { options: request.options, steps: [step], showsStep: false };
}

/** Model and stream flag, from the bytes: a body whose dialect the provider speaks is parsed no more often than other calls' bodies. */
function readHead(body: RequestBody): {
  readonly model: string;
  readonly isStream: boolean;
  readonly isBackground: boolean;
} {
  if (body.kind === "none") throw malformed("The body is empty");
  const members = readMembers(body.kind === "whole" ? body.bytes : body.start, WANTED);
  return {
    model: checkModel(members.get("model")),
    isStream: members.get("stream") === true,
    isBackground: members.get("background") === true,
  };
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
  const name = toModelName(model) ?? "";
  if (name === "") {
    throw new SignalboxError("gateway_malformed_request", {
      message: `model is required and must be a string of at most ${MAX_MODEL_LENGTH} characters`,
      param: "model",
    });
  }
  return name;
}

function tooLarge(maxBytes: number): SignalboxError {
  return new SignalboxError("gateway_body_too_large", {
    message: `Request body too large to be translated (maximum ${maxBytes} bytes)`,
  });
}

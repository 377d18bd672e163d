/**
 * Turns a call of a unified door into a step for one model. If the provider speaks the client's dialect, the body goes upstream as it
 * was sent, with only the model's name replaced: unknown fields, betas and the prefixes of prompt caches survive. Otherwise the request
 * is translated, and the response will be.
 */
import { SignalboxError } from "@signalbox/protocol";
import {
  createStreamTranslator,
  type Dialect,
  embeddingsFromGemini,
  embeddingsToGemini,
  geminiEmbeddingsFromOpenAi,
  geminiEmbeddingsToOpenAi,
  InvalidRequestError,
  offersWebSearch,
  streamResponse,
  type StreamTranslator,
  translateError,
  translateRequest,
  translateResponse,
  UnsupportedFieldError,
} from "@signalbox/translate";
import type { Clock } from "../../core/clock.ts";
import { ulid } from "../../core/ulid.ts";
import { editMembers, type MemberEdit, type RequestBody } from "../../engines/relay/index.ts";
import { readLastEvent } from "../exchange/kept-answers.ts";
import { notingAnswer } from "../exchange/note-answer.ts";
import { PingedExchange } from "../exchange/stream-ping.ts";
import { TranslatedExchange } from "../exchange/translated-exchange.ts";
import type { ModelTarget } from "../models/model-target.ts";
import type { Provider } from "../providers/provider.ts";
import { UnsupportedMedia } from "../providers/converse.ts";
import type { BodyForm, ProviderApi } from "../providers/provider-api.ts";
import type { Translation, ResponseConverter } from "../step/translation.ts";
import { type ModelRequest, headersFor, homeOf, takeBetas } from "./model-request.ts";
import { malformed } from "../step/malformed.ts";
import { planStep, type StepParts } from "./plan-step.ts";
import type { RequestType, Step } from "../step/step.ts";
import { toFacts } from "../step/body-facts.ts";

type Send = Parameters<ResponseConverter>[0];

/** The part of a step that depends on the API it uses. */
interface Plan {
  readonly path: string;
  readonly body: RequestBody;
  /** The request whose headers are sent on. */
  readonly request: ModelRequest;
  /** Whether the body does not name the model. */
  readonly isModelHidden: boolean;
  readonly translation: Omit<Translation, "clientDialect" | "request" | "responseHeaders">;
}

export function planModelStep(parts: StepParts, request: ModelRequest, target: ModelTarget): Step {
  const { provider } = target;
  requireAddress(provider);
  const plan = planFor(parts.clock, request, target);
  const { translation } = plan;
  // The client's query belongs to the API of the client's dialect, at the path that this API has everywhere.
  const isSameApi = !plan.isModelHidden || request.path !== undefined;
  const question = plan.path.indexOf("?");
  const query = question === -1 ? "" : plan.path.slice(question + 1);
  const step = planStep(parts, {
    context: request.context,
    provider,
    method: "POST",
    path: question === -1 ? plan.path : plan.path.slice(0, question),
    query: isSameApi && query === "" ? request.query : query,
    forwarded: headersFor(plan.request, target, translation.providerDialect),
    contentType: "application/json",
    body: plan.body,
    options: target.options === undefined ? request.options : { ...request.options, ...target.options },
    translation: {
      ...translation,
      clientDialect: request.endpoint,
      request: request.body,
      responseHeaders: responseHeaders(translation.dropped),
    },
    facts: plan.isModelHidden ? { ...toFacts(request.fields()), model: target.model } : undefined,
  });
  // What the caller does counts, not the path at the provider.
  return request.path === undefined ? { ...step, requestType: typeOf(request) } : step;
}

function typeOf({ endpoint, embeds }: ModelRequest): RequestType {
  if (embeds !== undefined) return "embeddings";
  return endpoint === "gemini" ? "generate_content" : endpoint;
}

function planFor(clock: Clock, request: ModelRequest, target: ModelTarget): Plan {
  if (request.embeds !== undefined) return planGeminiEmbeddings(request, target, request.embeds);
  return request.endpoint === "embeddings"
    ? planEmbeddings(request, target)
    : planCall(clock, request, target);
}

/** A door sends nothing to a host that a caller could choose. */
export function requireAddress({ slug, isHostOfCaller }: Provider): void {
  if (isHostOfCaller) {
    throw malformed(`${slug} needs an address: set providers.${slug}.baseUrl in the configuration`);
  }
}

function planCall(clock: Clock, request: ModelRequest, target: ModelTarget): Plan {
  const { endpoint } = request;
  if (endpoint === "embeddings") throw new Error("embeddings are planned elsewhere");
  const { calls } = target.provider.apisFor(target.model);
  const api = calls.find(({ dialect }) => dialect === endpoint) ?? apiFor(request, endpoint, calls);
  if (api === undefined) throw unavailable(target, "conversations");
  const plan =
    api.dialect === endpoint && api.form === undefined
      ? planSame(request, target, api)
      : planTranslated(clock.now(), request, endpoint, target, api);
  return api.betas === undefined ? plan : withBetas(plan, api.betas);
}

/** Moves the betas of the caller into the body. Those that the API would refuse are left out and listed. */
function withBetas(plan: Plan, { member, known }: NonNullable<ProviderApi["betas"]>): Plan {
  const { request, betas } = takeBetas(plan.request);
  const taken = betas.filter((beta) => known.has(beta.toLowerCase()));
  const left = betas.filter((beta) => !taken.includes(beta)).map((beta) => `anthropic-beta.${beta}`);
  return {
    ...plan,
    request,
    body: taken.length === 0 ? plan.body : addMember(plan.body, member, taken),
    translation: { ...plan.translation, dropped: [...plan.translation.dropped, ...left] },
  };
}

/** Adds a member in front of the others; one of the same name that the client sent is replaced. */
function addMember(body: RequestBody, name: string, value: unknown): RequestBody {
  const edited = editBody(body, new Map([[name, null]]));
  if (edited.kind === "none") return edited;
  const bytes = edited.kind === "whole" ? edited.bytes : edited.start;
  const brace = bytes.indexOf("{") + 1;
  const added = Buffer.concat([
    bytes.subarray(0, brace),
    Buffer.from(`${JSON.stringify(name)}:${JSON.stringify(value)},`),
    bytes.subarray(brace),
  ]);
  if (edited.kind === "whole") return { kind: "whole", bytes: added };
  const length = edited.length === null ? null : edited.length + added.length - bytes.length;
  return { ...edited, start: added, length };
}

/** The first API, unless the request offers a search of the web that only another one has. */
function apiFor(
  { fields }: ModelRequest,
  endpoint: Dialect,
  calls: readonly ProviderApi[],
): ProviderApi | undefined {
  const searching = calls.find(({ traits }) => traits?.webSearch === true);
  return searching !== undefined && offersWebSearch(endpoint, fields()) ? searching : calls[0];
}

function planSame(request: ModelRequest, target: ModelTarget, api: ProviderApi): Plan {
  const { isStream } = request;
  if (api.dialect === "gemini") return planSameGemini(request, target, api);
  const { inPlaceOfModel, without = [] } = api;
  const member =
    inPlaceOfModel === undefined
      ? { name: "model", json: JSON.stringify(target.model) }
      : { name: inPlaceOfModel.name, json: JSON.stringify(inPlaceOfModel.value) };
  const edits = new Map<string, MemberEdit>([["model", member]]);
  for (const name of without) edits.set(name, null);
  return {
    request,
    path: request.path ?? pathOf(api, target, isStream),
    body: editBody(request.body, edits),
    isModelHidden: inPlaceOfModel !== undefined || request.path !== undefined,
    translation: { providerDialect: api.dialect, dropped: [], convert: convertSame(request, target, api) },
  };
}

/** Which provider keeps an answer is remembered, but for OpenAI, which is asked for unknown ones. */
function convertSame(
  { earlier, isStream, endpoint }: ModelRequest,
  { provider: { slug } }: ModelTarget,
  { unframe }: ProviderApi,
): ResponseConverter | null {
  if (endpoint === "responses" && earlier !== null && slug !== homeOf(endpoint)) {
    const note = (id: string) => earlier.noteProvider(id, slug);
    return (send, handler) => new PingedExchange((inner) => send(notingAnswer(inner, note)), handler);
  }
  return isStream ? (send, handler) => new PingedExchange(unframed(send, unframe), handler) : null;
}

/** The path names the model, and the query of the client says in which form it wants a stream. */
function planSameGemini(request: ModelRequest, target: ModelTarget, api: ProviderApi): Plan {
  return {
    request,
    path: (request.path ?? pathOf(api, target, request.isStream)).split("?", 1)[0] ?? "",
    body: request.body,
    isModelHidden: false,
    translation: {
      providerDialect: "gemini",
      dropped: [],
      convert: request.isStream ? (send, handler) => new PingedExchange(send, handler) : null,
    },
  };
}

function planTranslated(
  now: number,
  request: ModelRequest,
  from: Dialect,
  target: ModelTarget,
  { dialect, traits, inPlaceOfModel, without = [], path, form, unframe }: ProviderApi,
): Plan {
  if (from === "gemini" && request.isStream && !/(?:^|&)alt=sse(?:&|$)/.test(request.query)) {
    throw malformed("A stream of this model needs alt=sse in the query");
  }
  const earlier = from === "responses" ? request.earlier : null;
  const fields = earlier?.complete(request.fields()) ?? request.fields();
  const { body, stream, dropped, context } = checked(() =>
    translateRequest(from, dialect, fields, {
      model: target.model,
      target: traits ?? {},
      dropUnsupported: request.options.dropParams === true,
      newId: (prefix) => prefix + ulid(now).toLowerCase(),
      now: Math.floor(now / 1000),
      stream: request.isStream,
      marksCache: true,
    }),
  );
  if (inPlaceOfModel !== undefined) {
    delete body["model"];
    body[inPlaceOfModel.name] = inPlaceOfModel.value;
  }
  for (const name of without) delete body[name];
  const sent = form === undefined ? body : inForm(form, body, target.model);
  const answerOf = (value: unknown) =>
    requireAnswer(dialect, form === undefined ? value : form.fromBody(value));
  const keepLast = (text: string) => {
    const answer = earlier === null ? null : readLastEvent(text);
    if (answer !== null) earlier?.keep(fields, answer);
  };
  const response = {
    isStream: stream,
    translate: (value: unknown) => {
      const answer = translateResponse(context, answerOf(value));
      earlier?.keep(fields, answer);
      return answer;
    },
    translateAsStream: (value: unknown) => {
      const text = streamResponse(context, answerOf(value));
      keepLast(text);
      return text;
    },
    translateError: (status: number, value: unknown) => translateError(context, status, value).body,
    createStream: () => {
      const translator = createStreamTranslator(context);
      return earlier === null ? translator : watched(translator, keepLast);
    },
  };
  return {
    request,
    path: pathOf({ path }, target, stream),
    body: toBody(sent),
    isModelHidden: true,
    translation: {
      providerDialect: dialect,
      dropped,
      convert: (send, handler) =>
        new TranslatedExchange(response, request.share, unframed(send, unframe), handler),
    },
  };
}

function inForm({ toBody: write }: BodyForm, body: Readonly<Record<string, unknown>>, model: string): object {
  try {
    return write(body, model);
  } catch (error) {
    if (error instanceof UnsupportedMedia) throw malformed(error.message);
    throw error;
  }
}

/** The translator, whose text `onText` sees. Every text ends at the end of an event. */
function watched(translator: StreamTranslator, onText: (text: string) => void): StreamTranslator {
  const seen = (text: string) => {
    onText(text);
    return text;
  };
  return {
    begin: () => translator.begin(),
    write: (chunk) => seen(translator.write(chunk)),
    end: () => seen(translator.end()),
    fail: (error) => translator.fail(error),
    get isComplete() {
      return translator.isComplete;
    },
    get error() {
      return translator.error;
    },
    get usage() {
      return translator.usage;
    },
    get heldLength() {
      return translator.heldLength;
    },
  };
}

/** The member that every answer of a dialect has; a body without it is an error, or not of this dialect. */
const ANSWERS: Readonly<Record<Dialect, readonly string[]>> = {
  chat: ["choices"],
  messages: ["content"],
  responses: ["output"],
  gemini: ["candidates", "promptFeedback"],
};

function requireAnswer(dialect: Dialect, value: unknown): unknown {
  if (typeof value === "object" && value !== null && ANSWERS[dialect].some((name) => name in value))
    return value;
  throw new Error(`the body is no answer of the dialect ${dialect}`);
}

function unframed(send: Send, unframe: ProviderApi["unframe"]): Send {
  return unframe === undefined ? send : (handler) => unframe(send, handler);
}

function planEmbeddings(request: ModelRequest, target: ModelTarget): Plan {
  const { embeddings } = target.provider.apisFor(target.model);
  if (embeddings === null) throw unavailable(target, "embeddings");
  if (embeddings.dialect === "chat") {
    const edits = new Map([["model", { name: "model", json: JSON.stringify(target.model) }]]);
    const translation = { providerDialect: "embeddings" as const, dropped: [], convert: null };
    const body = editBody(request.body, edits);
    return { request, path: embeddings.path(target.model), body, isModelHidden: false, translation };
  }
  const { body, dropped, context } = checked(() =>
    embeddingsToGemini(request.fields(), {
      model: target.model,
      dropUnsupported: request.options.dropParams === true,
    }),
  );
  const response = {
    isStream: false,
    translate: (value: unknown) => embeddingsFromGemini(context, value),
    translateAsStream: notStreamed,
    translateError: (status: number, value: unknown) =>
      translateError({ from: "chat", to: "gemini" }, status, value).body,
    createStream: notStreamed,
  };
  return {
    request,
    path: embeddings.path(encodeURIComponent(target.model)),
    body: { kind: "whole", bytes: Buffer.from(JSON.stringify(body)) },
    isModelHidden: true,
    translation: {
      providerDialect: "gemini",
      dropped,
      convert: (send, handler) => new TranslatedExchange(response, request.share, send, handler),
    },
  };
}

/** Embeddings for a client of Gemini's API. */
function planGeminiEmbeddings(
  request: ModelRequest,
  target: ModelTarget,
  method: NonNullable<ModelRequest["embeds"]>,
): Plan {
  const { embeddings } = target.provider.apisFor(target.model);
  if (embeddings === null) throw unavailable(target, "embeddings");
  const isBatch = method === "batchEmbedContents";
  if (embeddings.dialect === "gemini") {
    return {
      request,
      path: embeddings.path(encodeURIComponent(target.model)).replace(/:\w+$/, `:${method}`),
      // The requests of a batch repeat the name of the model.
      body: isBatch ? toBody(nameModel(request.fields(), target.model)) : request.body,
      isModelHidden: true,
      translation: { providerDialect: "gemini", dropped: [], convert: null },
    };
  }
  const { body, dropped } = checked(() =>
    geminiEmbeddingsToOpenAi(request.fields(), {
      model: target.model,
      dropUnsupported: request.options.dropParams === true,
    }),
  );
  const response = {
    isStream: false,
    translate: (value: unknown) => geminiEmbeddingsFromOpenAi(value, isBatch),
    translateAsStream: notStreamed,
    translateError: (status: number, value: unknown) =>
      translateError({ from: "gemini", to: "chat" }, status, value).body,
    createStream: notStreamed,
  };
  return {
    request,
    path: embeddings.path(target.model),
    body: toBody(body),
    isModelHidden: true,
    translation: {
      providerDialect: "embeddings",
      dropped,
      convert: (send, handler) => new TranslatedExchange(response, request.share, send, handler),
    },
  };
}

function nameModel(fields: Readonly<Record<string, unknown>>, model: string): object {
  const requests: unknown = fields["requests"];
  if (!Array.isArray(requests)) throw malformed("requests is required and must be a list");
  return {
    ...fields,
    requests: requests.map((one: unknown) =>
      typeof one === "object" && one !== null ? { ...one, model: `models/${model}` } : one,
    ),
  };
}

function toBody(value: object): RequestBody {
  return { kind: "whole", bytes: Buffer.from(JSON.stringify(value)) };
}

function notStreamed(): never {
  throw new Error("embeddings are not streamed");
}

function pathOf({ path }: Pick<ProviderApi, "path">, { model }: ModelTarget, isStream: boolean): string {
  return path(encodeURIComponent(model.replace(/^models\//, "")), isStream);
}

/** Of a body that is streamed the edited members stand in its beginning. */
export function editBody(body: RequestBody, edits: ReadonlyMap<string, MemberEdit>): RequestBody {
  if (body.kind === "none") return body;
  if (body.kind === "whole") return { kind: "whole", bytes: editMembers(body.bytes, edits) };
  const start = editMembers(body.start, edits);
  const length = body.length === null ? null : body.length + start.length - body.start.length;
  return { ...body, start, length };
}

/** Turns the errors of a translation into errors of the gateway that name the field. */
export function checked<T>(translate: () => T): T {
  try {
    return translate();
  } catch (error) {
    if (error instanceof UnsupportedFieldError) {
      throw new SignalboxError("gateway_malformed_request", {
        message: `${error.field}: ${error.message}; send gw-aig-drop-params: true to leave it out`,
        param: error.field,
      });
    }
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new SignalboxError("gateway_malformed_request", {
      message: `${error.field}: ${error.message}`,
      param: error.field,
      ...(error.code === null ? {} : { reason: error.code }),
    });
  }
}

export function unavailable({ provider }: ModelTarget, what: string): SignalboxError {
  return malformed(`${provider.slug} has no API for ${what} that this door can use`);
}

function responseHeaders(dropped: readonly string[]): string[] {
  return dropped.length === 0 ? [] : ["gw-aig-dropped", toHeaderText(dropped.join(","))];
}

const MAX_HEADER_TEXT = 1024;

function toHeaderText(text: string): string {
  return text.slice(0, MAX_HEADER_TEXT).replaceAll(/[^\x20-\x7e]/g, "?");
}

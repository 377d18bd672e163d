/**
 * The endpoint `ai/run` of the hosted original: `{model, input}`, where `input` is what the provider of the model takes. The response is in
 * the envelope of the management interface, except for a stream.
 */
import { ERROR_TABLE } from "@signalbox/protocol";
import { TranslatedExchange, type ResponseTranslation } from "../exchange/translated-exchange.ts";
import type { ModelTarget } from "../models/model-target.ts";
import { type ModelRequest, headersFor } from "./model-request.ts";
import { planModelStep } from "./plan-model-step.ts";
import { planStep, type StepParts } from "./plan-step.ts";
import type { Step } from "../step/step.ts";
import { toFacts } from "../step/body-facts.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Answers in the envelope by itself, and takes the input as it is. */
const WORKERS_AI = "workers-ai";

const ENVELOPE: ResponseTranslation = {
  isStream: false,
  translate: (result) => ({ success: true, errors: [], messages: [], result }),
  translateError: (status, body) => ({
    success: false,
    errors: [{ code: codeOf(status), message: messageOf(body) ?? `HTTP ${status}` }],
    messages: [],
    result: null,
  }),
  translateAsStream: noEnvelope,
  createStream: noEnvelope,
};

/** Clients of the hosted original recognise a credential that a provider has refused by the code. */
function codeOf(status: number): number {
  const { gateway_unauthorized: refused, gateway_provider_unreachable: failed } = ERROR_TABLE;
  return status === refused.status ? refused.code : failed.code;
}

function noEnvelope(): never {
  throw new Error("a stream has no envelope");
}

export function planRunStep(
  parts: StepParts,
  request: ModelRequest,
  target: ModelTarget,
  input: Fields,
): Step {
  if (target.provider.slug === WORKERS_AI) return planWorkersAi(parts, request, target, input);
  const isStream = input["stream"] === true;
  const fields = { ...input, model: target.model };
  const step = planModelStep(
    parts,
    {
      ...request,
      endpoint: endpointOf(target, input),
      body: toBody(fields),
      fields: () => fields,
      isStream,
    },
    target,
  );
  const { translation } = step;
  if (translation === null || isStream) return step;
  const { convert } = translation;
  return {
    ...step,
    translation: {
      ...translation,
      isEnveloped: true,
      convert: (send, handler) =>
        new TranslatedExchange(
          ENVELOPE,
          request.share,
          convert === null ? send : (inner) => convert(send, inner),
          handler,
        ),
    },
  };
}

/** The dialect that the input is written in. */
function endpointOf({ provider, model }: ModelTarget, input: Fields): ModelRequest["endpoint"] {
  const { calls } = provider.apisFor(model);
  if ("input" in input) return "messages" in input || calls.length > 0 ? "responses" : "embeddings";
  return calls[0]?.dialect === "messages" ? "messages" : "chat";
}

function planWorkersAi(parts: StepParts, request: ModelRequest, target: ModelTarget, input: Fields): Step {
  return planStep(parts, {
    context: request.context,
    provider: target.provider,
    method: "POST",
    path: `run/${target.model}`,
    query: "",
    forwarded: headersFor(request, target, "chat"),
    contentType: "application/json",
    body: toBody(input),
    options: request.options,
    facts: { ...toFacts(input), model: target.model },
  });
}

function toBody(fields: Fields): { readonly kind: "whole"; readonly bytes: Buffer } {
  return { kind: "whole", bytes: Buffer.from(JSON.stringify(fields)) };
}

/** The message of an error in any of the dialects. */
function messageOf(body: unknown): string | null {
  if (typeof body === "string") return body.slice(0, 1000);
  if (typeof body !== "object" || body === null || !("error" in body)) return null;
  const { error } = body;
  return typeof error === "object" &&
    error !== null &&
    "message" in error &&
    typeof error.message === "string"
    ? error.message
    : null;
}

/**
 * Turns a call of an endpoint that is not translated (images, sound, rankings, moderations) into a step: the model in the body, a JSON object or a form,
 * names the provider, and gets the name that it has there. All other bytes are the client's.
 */
import { SignalboxError } from "@signalbox/protocol";
import { readMembers, type RequestBody } from "../../engines/relay/index.ts";
import type { ModelTarget } from "../models/model-target.ts";
import { editForm, formValues } from "../step/body-facts.ts";
import { malformed } from "../step/malformed.ts";
import type { Step } from "../step/step.ts";
import { credentialFor, type ModelRequest } from "./model-request.ts";
import { editBody, requireAddress, unavailable } from "./plan-model-step.ts";
import { planStep, type StepParts } from "./plan-step.ts";

export interface PassedRequest extends Pick<
  ModelRequest,
  "body" | "context" | "fields" | "forwarded" | "options" | "query"
> {
  /** As OpenAI names it. */
  readonly endpoint: string;
  readonly contentType: string | undefined;
  /** Whether the body names the model, which is then replaced. */
  readonly namesModel: boolean;
}

const MODEL: ReadonlySet<string> = new Set(["model"]);
const FORM_TYPE = /^multipart\/form-data\s*;/i;
/** Whose SDKs call an endpoint, and so send their key. */
const HOMES: ReadonlyMap<string, string> = new Map([["rerank", "cohere"]]);

export function planPassedStep(parts: StepParts, request: PassedRequest, target: ModelTarget): Step {
  const { endpoint, body, forwarded, contentType } = request;
  const { provider, model } = target;
  requireAddress(provider);
  const path = provider.apisFor(model).further(endpoint);
  if (path === null) throw unavailable(target, endpoint);
  return planStep(parts, {
    context: request.context,
    provider,
    method: "POST",
    path,
    query: request.query,
    forwarded: {
      headers: forwarded.headers,
      credential: credentialFor(forwarded, HOMES.get(endpoint) ?? "openai", target),
    },
    contentType,
    body: request.namesModel ? withModel(body, contentType, model) : body,
    options: target.options === undefined ? request.options : { ...request.options, ...target.options },
  });
}

/** The model that the body names; null for a body without one. Of a body that is streamed, the beginning has it. */
export function readPassedModel(
  body: RequestBody,
  contentType: string | undefined,
  maxBytes: number,
): string | null {
  if (body.kind === "none") throw malformed("The body is empty");
  const bytes = body.kind === "whole" ? body.bytes : body.start;
  const names = new Set<unknown>(
    isForm(contentType) ? formValues(bytes, "model") : readMembers(bytes, MODEL).values(),
  );
  if (names.size > 1) throw malformed("The form names more than one model");
  const [model] = names;
  if (typeof model === "string") return model;
  if (model !== undefined) throw malformed("model must be a string");
  if (body.kind === "whole") return null;
  throw new SignalboxError("gateway_body_too_large", {
    message: `The body has more than ${maxBytes} bytes (gateway.replayBodyBytes) and does not begin with its model: send model before the file`,
    param: "model",
  });
}

function withModel(body: RequestBody, contentType: string | undefined, model: string): RequestBody {
  if (!isForm(contentType)) {
    return editBody(body, new Map([["model", { name: "model", json: JSON.stringify(model) }]]));
  }
  if (body.kind === "none") return body;
  if (body.kind === "whole") return { kind: "whole", bytes: editForm(body.bytes, "model", model) };
  const start = editForm(body.start, "model", model);
  const length = body.length === null ? null : body.length + start.length - body.start.length;
  return { ...body, start, length };
}

function isForm(contentType: string | undefined): boolean {
  return FORM_TYPE.test(contentType ?? "");
}

/**
 * Section 4.3 of the contract: a webhook posted to `/agents/{agent}/{name}` instead of through the intake. Same order of work, generic
 * scheme, the secret from the instance's environment, and the same ledger as the intake's, so that a delivery that comes both ways runs once.
 *
 * Method, signature and body are judged before there is an instance; what was judged is then handed to the instance with the request.
 */
import { SignalboxError } from "@signalbox/protocol";
import type {
  AdmissionContext,
  AgentEnvironment,
  AgentHost,
  DeliveryOutcome,
  WebhookEvent,
} from "../agents/index.ts";
import { webhookKeys } from "../config/webhook-keys.ts";
import { isNameOf } from "./instance-name.ts";
import { parsePayload } from "./parse-payload.ts";
import { readEvent, readType } from "./read-event.ts";
import { createSources, type Source } from "./source.ts";
import { findFirst } from "./sources/index.ts";

/** Events of requests that were let through and have not reached their instance yet. */
const admitted = new WeakMap<Request, WebhookEvent>();

/** Throws for a request that is not a delivery, or not a genuine one. */
export function admitDirectDelivery(request: Request, { name, env, body, now }: AdmissionContext): void {
  requirePost(request);
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  admitted.set(request, readDelivery(request, name, bytes, env, now));
}

/** In a turn of the instance. */
export async function answerDirectDelivery(
  request: Request,
  environment: AgentEnvironment,
  host: AgentHost,
): Promise<Response> {
  return toResponse(await host.deliver(admitted.get(request) ?? (await judge(request, environment, host))));
}

/** For a subclass that hands on a request which nobody has judged. */
async function judge(request: Request, env: AgentEnvironment, host: AgentHost): Promise<WebhookEvent> {
  requirePost(request);
  return readDelivery(request, host.name, Buffer.from(await request.arrayBuffer()), env, host.now());
}

function requirePost({ method }: Request): void {
  if (method !== "POST") throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
}

function readDelivery(
  request: Request,
  name: string,
  body: Buffer,
  env: AgentEnvironment,
  now: number,
): WebhookEvent {
  const headers = Object.fromEntries(request.headers);
  const source = genericSource(env["WEBHOOK_SECRET"]);
  const isGenuine =
    source.keys.length > 0 &&
    source.scheme.verify({ headers, body, urls: () => [] }, source.keys, now, source.windowMs) === null;
  if (!isGenuine) throw new SignalboxError("webhook_invalid_signature");
  const verified = { headers, payload: parsePayload(source.kind, headers["content-type"], body) };
  const stated = findFirst(source.statedEntity, verified);
  // A captured delivery must not work for another entity than its signed body names.
  if (stated !== null && !isNameOf(name, stated)) throw new SignalboxError("webhook_entity_mismatch");
  return readEvent(source, verified, readType(source, verified), body, now);
}

function toResponse(outcome: DeliveryOutcome): Response {
  if (outcome.kind !== "answered") {
    return Response.json({ status: outcome.kind }, { status: outcome.kind === "queued" ? 202 : 200 });
  }
  const { status, contentType, body } = outcome;
  return new Response(body === "" ? null : body, { status, headers: { "content-type": contentType } });
}

let generic: { readonly secret: string | undefined; readonly source: Source } | undefined;

/** Made once: all instances of a process share one environment. */
function genericSource(secret: string | undefined): Source {
  if (generic === undefined || generic.secret !== secret) {
    const source = createSources(webhookKeys.parse({}), { WEBHOOK_SECRET: secret }).get("generic");
    if (source === undefined) throw new Error("the generic source is built in");
    generic = { secret, source };
  }
  return generic.source;
}

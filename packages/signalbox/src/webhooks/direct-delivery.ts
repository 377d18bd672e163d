/**
 * Section 4.3 of the contract: a webhook posted to `/agents/{agent}/{name}`. The order of work is the intake's, the scheme is the generic one,
 * the secret is the instance's `WEBHOOK_SECRET`. The ledger is shared with the intake, so a delivery that arrives both ways runs once.
 *
 * Method, signature and body are checked before the instance is created; the event is then passed to the instance with the request.
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
import { findEntity, parsePayload, readEvent, verifySignature } from "./read-event.ts";
import { createSources, type Source } from "./source.ts";

/** Events of admitted requests that have not reached their instance yet. */
const admitted = new WeakMap<Request, WebhookEvent>();

/** Throws for a request that is not a genuine delivery. */
export function admitDirectDelivery(request: Request, { name, env, body, now }: AdmissionContext): void {
  requirePost(request);
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  admitted.set(request, readDelivery(request, name, bytes, env, now));
}

/** Runs in a turn of the instance. */
export async function answerDirectDelivery(
  request: Request,
  environment: AgentEnvironment,
  host: AgentHost,
): Promise<Response> {
  const event = admitted.get(request) ?? (await readUnadmitted(request, environment, host));
  return toResponse(await host.deliver(event));
}

/** For a subclass that passes on a request of its own making. */
async function readUnadmitted(
  request: Request,
  env: AgentEnvironment,
  host: AgentHost,
): Promise<WebhookEvent> {
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
  const problem = verifySignature(source, { headers, body, urls: () => [] }, now);
  if (problem !== null) throw new SignalboxError("webhook_invalid_signature");
  const delivery = { headers, ...parsePayload(source.kind, headers["content-type"], body) };
  findEntity(source, delivery, name);
  return readEvent(source, delivery, body, now);
}

function toResponse(outcome: DeliveryOutcome): Response {
  if (outcome.kind !== "answered") {
    return Response.json({ status: outcome.kind }, { status: outcome.kind === "queued" ? 202 : 200 });
  }
  const { status, contentType, body } = outcome;
  return new Response(body === "" ? null : body, { status, headers: { "content-type": contentType } });
}

let generic: { readonly secret: string | undefined; readonly source: Source } | undefined;

/** Created once: all instances of a process have the same environment. */
function genericSource(secret: string | undefined): Source {
  if (generic === undefined || generic.secret !== secret) {
    const source = createSources(webhookKeys.parse({}), { WEBHOOK_SECRET: secret }).get("generic");
    if (source === undefined) throw new Error("the generic source is built in");
    generic = { secret, source };
  }
  return generic.source;
}

/**
 * Section 4.3 of the contract: a webhook posted to `/agents/{agent}/{name}` instead of through the intake. Same order of work, generic
 * scheme, the secret from the instance's environment, and the same ledger as the intake's, so that a delivery that comes both ways runs once.
 */
import type { AgentEnvironment, AgentHost, EventOutcome, WebhookEvent } from "../agents/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { webhookKeys } from "../config/webhook-keys.ts";
import { parsePayload } from "./parse-payload.ts";
import { readEvent, readType } from "./read-event.ts";
import { createSources, type Source } from "./source.ts";

type Receive = (event: WebhookEvent) => EventOutcome | Promise<EventOutcome>;

export async function answerDirectDelivery(
  request: Request,
  environment: AgentEnvironment,
  host: AgentHost,
  receive: Receive,
): Promise<Response> {
  if (request.method !== "POST") {
    return Response.json({ error: "Method not allowed" }, { status: 405, headers: { allow: "POST" } });
  }
  const body = Buffer.from(await request.arrayBuffer());
  const headers = Object.fromEntries(request.headers);
  const source = genericSource(environment);
  const delivery = { headers, body, urls: () => [] };
  const isGenuine =
    source.keys.length > 0 && source.scheme.verify(delivery, source.keys, Date.now(), 0) === null;
  if (!isGenuine) return Response.json({ error: "Invalid signature" }, { status: 401 });
  let payload: unknown;
  try {
    payload = parsePayload(source.kind, headers["content-type"], body);
  } catch (error) {
    if (!(error instanceof SignalboxError)) throw error;
    return Response.json({ error: error.message }, { status: error.status });
  }
  const verified = { headers, payload };
  const event = readEvent(source, verified, readType(source, verified), body, Date.now());
  const key = `${event.source}:${event.id}`;
  if (host.ledger.has(key)) return Response.json({ status: "duplicate" });
  const outcome = receive(event);
  const result = outcome instanceof Promise ? await outcome : outcome;
  host.ledger.addIfNew(key);
  return result === "queued"
    ? Response.json({ status: "queued" }, { status: 202 })
    : Response.json({ status: "processed" });
}

function genericSource(environment: AgentEnvironment): Source {
  const source = createSources(webhookKeys.parse({}), { WEBHOOK_SECRET: environment["WEBHOOK_SECRET"] }).get(
    "generic",
  );
  if (source === undefined) throw new Error("the generic source is built in");
  return source;
}

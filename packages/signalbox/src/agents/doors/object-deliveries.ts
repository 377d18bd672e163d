/**
 * Deliveries to objects of the worker. The object's `fetch` receives the request with all headers of the sender, signature included, and its bytes; its
 * response goes to the sender. An object has no ledger of ours: a delivery that the sender or the server repeats reaches it again.
 */
import { SignalboxError } from "@signalbox/protocol";
import type {
  AgentDeliveries,
  DeliveryOutcome,
  DeliveryTarget,
  SignedHeaders,
} from "../../contracts/agent-deliveries.ts";
import { overloaded } from "../../core/overload.ts";
import { objectClassOf } from "../../contracts/object-agent.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { ObjectHost } from "../objects/object-host.ts";

/** Headers of the connection and of the browser; they are no part of a delivery. */
const DROPPED: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "cookie",
  "host",
  "keep-alive",
  "proxy-authorization",
  "transfer-encoding",
]);

/** The deliveries of a server with a worker. */
export function withObjects(deliveries: AgentDeliveries, objects: ObjectHost): AgentDeliveries {
  return {
    hasAgent(agent, account = objects.account) {
      const className = objectClassOf(agent);
      if (className === null) return deliveries.hasAgent(agent);
      return account === objects.account && objects.has(className);
    },
    agentNames: () => deliveries.agentNames(),
    prepare(target) {
      if (objectClassOf(target.agent) === null) deliveries.prepare(target);
    },
    deliver(target, event, signed) {
      const className = objectClassOf(target.agent);
      return className === null
        ? deliveries.deliver(target, event, signed)
        : deliver(objects, className, target, event, signed);
    },
  };
}

/** An object that could not take the delivery, or whose node was lost meanwhile, is no failure of its code: the sender should try again. */
function toDeliveryError(error: unknown): SignalboxError {
  const { cause, retryable } = (error ?? {}) as { readonly cause?: unknown; readonly retryable?: boolean };
  if (cause instanceof SignalboxError) return cause;
  if (retryable === true) return overloaded("The node of the object was lost", { "retry-after": "1" });
  return new SignalboxError("agent_failed", { cause: error });
}

async function deliver(
  objects: ObjectHost,
  className: string,
  { name }: DeliveryTarget,
  event: WebhookEvent,
  signed: SignedHeaders | undefined,
): Promise<DeliveryOutcome> {
  // A route may name a class that the worker exported when it was saved.
  if (!objects.has(className)) throw new SignalboxError("agent_not_found");
  const headers = new Headers();
  for (const [key, value] of Object.entries({ ...event.headers, ...signed?.headers })) {
    if (value !== undefined && !DROPPED.has(key))
      headers.set(key, typeof value === "string" ? value : value.join(", "));
  }
  const request = new Request(`http://localhost/webhooks/${event.source}/${encodeURIComponent(name)}`, {
    method: "POST",
    headers,
    body: event.rawBody as Uint8Array<ArrayBuffer>,
  });
  let response: Response;
  try {
    response = await objects.namespace(className).getByName(name).fetch(request);
  } catch (cause) {
    throw toDeliveryError(cause);
  }
  return {
    kind: "answered",
    status: response.status,
    contentType: response.headers.get("content-type") ?? "text/plain; charset=utf-8",
    body: await response.text(),
  };
}

/** A verified webhook as a turn: the ledger decides whether it runs, and its entry is stored with what the handler wrote. */
import type { DeliveryOutcome } from "../agents-door.ts";
import type { Instance } from "./instance.ts";
import { isEventHandler, receiveEvent } from "./receive-event.ts";
import type { WebhookEvent } from "../webhook-event.ts";

/** Copies of deliveries that are at an await right now; only interleaving agents can have any. */
const running = new WeakMap<Instance, Map<string, Promise<unknown>>>();

export function deliver(instance: Instance, event: WebhookEvent): Promise<DeliveryOutcome> {
  const key = `${event.source}:${event.id}`;
  if (!instance.definition.isInterleaving) return deliverOnce(instance, event, key);
  const inFlight = running.get(instance) ?? new Map<string, Promise<unknown>>();
  running.set(instance, inFlight);
  const before = inFlight.get(key) ?? Promise.resolve();
  const outcome = before.then(
    () => deliverOnce(instance, event, key),
    () => deliverOnce(instance, event, key),
  );
  inFlight.set(key, outcome);
  const forget = () => {
    if (inFlight.get(key) === outcome) inFlight.delete(key);
  };
  outcome.then(forget, forget);
  return outcome;
}

function deliverOnce(instance: Instance, event: WebhookEvent, key: string): Promise<DeliveryOutcome> {
  return instance.run({
    kind: "delivery",
    label: `${event.source} ${event.type}`,
    body: () => {
      const { agent, ledger } = instance.parts;
      if (!isEventHandler(agent)) return ledger.has(key) ? DUPLICATE : answer(instance, event, key);
      // A handler that does not wait is one transaction with the entry, which may then as well come first: that saves looking for it.
      const isLast = isAsynchronous(agent.onEvent);
      if (isLast ? ledger.has(key) : !ledger.addIfNew(key)) return DUPLICATE;
      const handled = receiveEvent(agent, event);
      if (!(handled instanceof Promise)) return toOutcome(handled);
      // It waits all the same.
      if (!isLast) ledger.remove(key);
      return handled.then((result) => {
        ledger.addIfNew(key);
        return toOutcome(result);
      });
    },
  });
}

const DUPLICATE: DeliveryOutcome = { kind: "duplicate" };
const AsyncFunction = (async () => undefined).constructor;

function isAsynchronous(handler: unknown): boolean {
  return handler instanceof AsyncFunction;
}

function toOutcome(result: void | "queued"): DeliveryOutcome {
  return { kind: result === "queued" ? "queued" : "processed" };
}

/** An agent without `onEvent` sees the delivery as the request it was. Only an answer of success marks it as seen. */
async function answer(instance: Instance, event: WebhookEvent, key: string): Promise<DeliveryOutcome> {
  const { agent, ledger } = instance.parts;
  const { agent: kebab, name } = instance.ref;
  const response = await agent.onRequest(
    new Request(`http://localhost/agents/${kebab}/${encodeURIComponent(name)}`, {
      method: "POST",
      headers: { ...event.headers, "x-event-type": event.type, "x-event-id": event.id },
      body: event.rawBody as Uint8Array<ArrayBuffer>,
    }),
  );
  const body = await response.text();
  if (response.ok) ledger.addIfNew(key);
  return {
    kind: "answered",
    status: response.status,
    contentType: response.headers.get("content-type") ?? "text/plain; charset=utf-8",
    body,
  };
}

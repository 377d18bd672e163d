/**
 * A verified webhook as a turn: the ledger decides whether it runs, and its entry is stored with what the handler wrote.
 *
 * Invariant: an event that the agent refuses (`RejectEvent`, or an answer that is not 2xx) leaves no entry, and nothing of what its handler has
 * written since its last await.
 */
import type { DeliveryOutcome } from "../../contracts/agents-door.ts";
import type { AnyAgent, EventHandler, EventOutcome } from "../api/agent.ts";
import { explainRejection } from "../api/reject-event.ts";
import { InFlight } from "./in-flight.ts";
import type { Instance } from "./instance.ts";
import { isEventHandler, receiveEvent } from "../api/receive-event.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";

/** Deliveries of interleaving agents, which alone can have a copy at an await while another one begins. */
const inFlight = new WeakMap<Instance, InFlight>();

export function deliver(instance: Instance, event: WebhookEvent): Promise<DeliveryOutcome> {
  const key = keyOf(event);
  if (!instance.definition.isInterleaving) return runTurn(instance, event, key);
  return inFlightOf(instance).run(key, () => runTurn(instance, event, key));
}

function runTurn(instance: Instance, event: WebhookEvent, key: string): Promise<DeliveryOutcome> {
  return instance.run({
    kind: "delivery",
    label: `${event.source} ${event.type}`,
    body: () => handle(instance, event, key),
  });
}

/** The same for code that is in a turn of the instance already. */
export function deliverInTurn(
  instance: Instance,
  event: WebhookEvent,
): DeliveryOutcome | Promise<DeliveryOutcome> {
  const key = keyOf(event);
  return instance.definition.isInterleaving
    ? inFlightOf(instance).run(key, () => handle(instance, event, key))
    : handle(instance, event, key);
}

function handle(
  instance: Instance,
  event: WebhookEvent,
  key: string,
): DeliveryOutcome | Promise<DeliveryOutcome> {
  const { agent, ledger } = instance.parts;
  if (!isEventHandler(agent)) return ledger.has(key) ? DUPLICATE : answer(instance, event, key);
  // A handler that does not wait is one transaction with the entry, which may then as well come first: that saves looking for it.
  const isLast = isAsynchronous(agent.onEvent);
  if (isLast ? ledger.has(key) : !ledger.addIfNew(key)) return DUPLICATE;
  const handled = receive(agent, event);
  if (!(handled instanceof Promise)) return conclude(instance, handled);
  // It waits all the same.
  if (!isLast) ledger.remove(key);
  return handled.then((result) => {
    if (!isRefusal(result)) ledger.addIfNew(key);
    return conclude(instance, result);
  }, refuse);
}

function receive(agent: AnyAgent & EventHandler, event: WebhookEvent): EventOutcome | Promise<EventOutcome> {
  try {
    return receiveEvent(agent, event);
  } catch (error) {
    return refuse(error);
  }
}

function refuse(error: unknown): never {
  throw explainRejection(error);
}

function conclude(instance: Instance, result: EventOutcome): DeliveryOutcome | Promise<DeliveryOutcome> {
  if (!(result instanceof Response)) return result === "queued" ? QUEUED : PROCESSED;
  if (isRefusal(result)) instance.parts.transactions.undo();
  return toAnswer(result);
}

const DUPLICATE: DeliveryOutcome = { kind: "duplicate" };
const PROCESSED: DeliveryOutcome = { kind: "processed" };
const QUEUED: DeliveryOutcome = { kind: "queued" };
const AsyncFunction = (async () => undefined).constructor;

function isAsynchronous(handler: unknown): boolean {
  return handler instanceof AsyncFunction;
}

/** True for an answer that tells the sender that its event was not taken. */
export function isRefusal(result: EventOutcome): boolean {
  return result instanceof Response && !result.ok;
}

function keyOf(event: WebhookEvent): string {
  return `${event.source}:${event.id}`;
}

function inFlightOf(instance: Instance): InFlight {
  let found = inFlight.get(instance);
  if (found === undefined) {
    found = new InFlight();
    inFlight.set(instance, found);
  }
  return found;
}

/** An agent without `onEvent` sees the delivery as the request it was. Only an answer of success marks it as seen. */
async function answer(instance: Instance, event: WebhookEvent, key: string): Promise<DeliveryOutcome> {
  const { agent, ledger } = instance.parts;
  const { agent: kebab, name } = instance.ref;
  const request = new Request(`http://localhost/agents/${kebab}/${encodeURIComponent(name)}`, {
    method: "POST",
    headers: { ...event.headers, "x-event-type": event.type, "x-event-id": event.id },
    body: event.rawBody as Uint8Array<ArrayBuffer>,
  });
  try {
    const response = await agent.onRequest(request);
    const outcome = await toAnswer(response);
    if (response.ok) ledger.addIfNew(key);
    return outcome;
  } catch (error) {
    return refuse(error);
  }
}

async function toAnswer(response: Response): Promise<DeliveryOutcome & { kind: "answered" }> {
  return {
    kind: "answered",
    status: response.status,
    contentType: response.headers.get("content-type") ?? "text/plain; charset=utf-8",
    body: await response.text(),
  };
}

/** Delivers a verified webhook to an instance, as a turn. */
import type { DeliveryOutcome } from "../../contracts/agents-door.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { TurnTarget } from "./agent-turn.ts";
import type { SerialByKey } from "./serial-by-key.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { Transactions } from "../../engines/turn-runtime/index.ts";
import type { AnyAgent, EventHandler, EventOutcome } from "../api/agent.ts";
import { isEventHandler, isRefusal, receiveEvent } from "../api/receive-event.ts";
import { explainRejection } from "../api/reject-event.ts";
import type { DeliveryLedger } from "./delivery-ledger.ts";

export interface DeliveryTarget extends TurnTarget {
  /** As in `LiveAgentParts`. */
  readonly deliveries: SerialByKey | null;
}

export function deliver(target: DeliveryTarget, event: WebhookEvent): Promise<DeliveryOutcome> {
  const { deliveries } = target;
  return deliveries === null
    ? runTurn(target, event)
    : deliveries.run(deliveryKey(event), () => runTurn(target, event));
}

function runTurn(target: TurnTarget, event: WebhookEvent): Promise<DeliveryOutcome> {
  return target.run({
    kind: "delivery",
    label: `${event.source} ${event.type}`,
    body: (live) => handleEvent(live, event),
  });
}

/*
 * Handles a verified webhook in a turn of its instance: the delivery ledger decides whether the handler runs, and the ledger entry is stored
 * with what the handler wrote.
 *
 * Invariant: an event that the agent refuses (`RejectEvent`, or a response that is not 2xx) leaves no ledger entry, and what its handler has
 * written since its last await is rolled back.
 */

export interface EventTarget {
  readonly ref: InstanceRef;
  readonly agent: AnyAgent;
  readonly ledger: DeliveryLedger;
  readonly transactions: Pick<Transactions, "undo">;
}

const DUPLICATE: DeliveryOutcome = { kind: "duplicate" };
const PROCESSED: DeliveryOutcome = { kind: "processed" };
const QUEUED: DeliveryOutcome = { kind: "queued" };
const AsyncFunction = (async () => undefined).constructor;

export function handleEvent(
  target: EventTarget,
  event: WebhookEvent,
): DeliveryOutcome | Promise<DeliveryOutcome> {
  const { agent, ledger } = target;
  const key = deliveryKey(event);
  if (!isEventHandler(agent)) return ledger.has(key) ? DUPLICATE : handleAsRequest(target, event, key);
  // A handler that does not wait is one transaction with its entry. The entry can then be inserted first, which saves the look-up.
  const isEntryLast = agent.onEvent instanceof AsyncFunction;
  if (isEntryLast ? ledger.has(key) : !ledger.addIfNew(key)) return DUPLICATE;
  const handled = callHandler(agent, event);
  if (!(handled instanceof Promise)) return conclude(target, handled);
  // A plain function returned a promise.
  if (!isEntryLast) ledger.remove(key);
  return handled.then((result) => {
    if (!isRefusal(result)) ledger.addIfNew(key);
    return conclude(target, result);
  }, refuse);
}

/** Deliveries with the same key are one event. */
export function deliveryKey(event: WebhookEvent): string {
  return `${event.source}:${event.id}`;
}

function callHandler(
  agent: AnyAgent & EventHandler,
  event: WebhookEvent,
): EventOutcome | Promise<EventOutcome> {
  try {
    return receiveEvent(agent, event);
  } catch (error) {
    return refuse(error);
  }
}

function refuse(error: unknown): never {
  throw explainRejection(error);
}

function conclude(target: EventTarget, result: EventOutcome): DeliveryOutcome | Promise<DeliveryOutcome> {
  if (!(result instanceof Response)) return result === "queued" ? QUEUED : PROCESSED;
  if (isRefusal(result)) target.transactions.undo();
  return toAnswer(result);
}

/** An agent without `onEvent` receives the delivery as an HTTP request. Only a successful response marks the delivery as seen. */
async function handleAsRequest(
  { agent, ledger, ref }: EventTarget,
  event: WebhookEvent,
  key: string,
): Promise<DeliveryOutcome> {
  const request = new Request(`http://localhost/agents/${ref.agent}/${encodeURIComponent(ref.name)}`, {
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

/**
 * Handles a verified webhook in a turn of its instance: the delivery ledger decides whether the handler runs, and the ledger entry is stored
 * with what the handler wrote.
 *
 * Invariant: an event that the agent refuses (`RejectEvent`, or a response that is not 2xx) leaves no ledger entry, and what its handler has
 * written since its last await is rolled back.
 */
import type { DeliveryOutcome, SignedHeaders } from "../../contracts/agent-deliveries.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import { currentTurn, type Transactions, type TurnOrigin } from "../../engines/turn-runtime/index.ts";
import type { AnyAgent } from "../api/agent.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import {
  type EventHandler,
  type EventOutcome,
  type EventReceiver,
  RECEIVE_EVENT,
} from "../api/event-handler.ts";
import { explainRejection } from "../api/reject-event.ts";
import type { DeliveryLedger } from "./delivery-ledger.ts";
import type { InstanceRef } from "./instance-ref.ts";

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
  signed?: SignedHeaders,
): DeliveryOutcome | Promise<DeliveryOutcome> {
  const { agent, ledger } = target;
  const key = deliveryKey(event);
  if (!isEventHandler(agent))
    return ledger.has(key) ? DUPLICATE : handleAsRequest(target, event, key, signed);
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

function isEventHandler(agent: AnyAgent): agent is AnyAgent & EventHandler {
  return typeof (agent as Partial<EventHandler>).onEvent === "function";
}

function receiveEvent(agent: EventHandler, event: WebhookEvent): EventOutcome | Promise<EventOutcome> {
  const receiver = agent as Partial<EventReceiver>;
  return receiver[RECEIVE_EVENT] === undefined ? agent.onEvent(event) : receiver[RECEIVE_EVENT](event);
}

/** True for a response that tells the sender that the event was refused. */
export function isRefusal(outcome: EventOutcome): boolean {
  return outcome instanceof Response && !outcome.ok;
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

/**
 * An agent without `onEvent` receives the delivery as an HTTP request. It may verify the signature itself, so it receives the headers that
 * events leave out. Only a successful response marks the delivery as seen.
 */
async function handleAsRequest(
  { agent, ledger, ref }: EventTarget,
  event: WebhookEvent,
  key: string,
  signed: SignedHeaders | undefined,
): Promise<DeliveryOutcome> {
  const request = new Request(`http://localhost/agents/${ref.agent}/${encodeURIComponent(ref.name)}`, {
    method: "POST",
    headers: {
      ...hiddenHeaders(event, signed),
      ...event.headers,
      "x-event-type": event.type,
      "x-event-id": event.id,
    },
    body: event.rawBody as Uint8Array<ArrayBuffer>,
  });
  const turn = currentTurn();
  // For `getCurrentAgent`. A delivery may always write.
  if (turn !== undefined) turn.origin = { request } satisfies AgentOrigin as TurnOrigin;
  try {
    const response = await agent.onRequest(request, {});
    const outcome = await toAnswer(response);
    if (response.ok) ledger.addIfNew(key);
    return outcome;
  } catch (error) {
    return refuse(error);
  }
}

/** Cookies are no part of a delivery. */
const NO_PART_OF_DELIVERIES: ReadonlySet<string> = new Set(["cookie", "proxy-authorization"]);

function hiddenHeaders(event: WebhookEvent, signed: SignedHeaders | undefined): Record<string, string> {
  const hidden: Record<string, string> = {};
  for (const [name, value] of Object.entries(signed?.headers ?? {})) {
    if (value === undefined || name in event.headers || NO_PART_OF_DELIVERIES.has(name)) continue;
    hidden[name] = typeof value === "string" ? value : value.join(", ");
  }
  return hidden;
}

async function toAnswer(response: Response): Promise<DeliveryOutcome & { kind: "answered" }> {
  return {
    kind: "answered",
    status: response.status,
    contentType: response.headers.get("content-type") ?? "text/plain; charset=utf-8",
    body: await response.text(),
  };
}

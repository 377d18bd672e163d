/**
 * How the runtime passes a verified webhook to an agent: it calls `onEvent`, unless a class between the user's class and `Agent` defines the
 * method below (`WebhookAgent` does, to store each event). A registered symbol finds the method whichever copy of the module
 * the class came from.
 */
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { AnyAgent, EventHandler, EventOutcome } from "./agent.ts";

export const RECEIVE_EVENT: unique symbol = Symbol.for("signalbox.receive-event") as never;

interface EventReceiver {
  [RECEIVE_EVENT](event: WebhookEvent): EventOutcome | Promise<EventOutcome>;
}

export function isEventHandler(agent: AnyAgent): agent is AnyAgent & EventHandler {
  return typeof (agent as Partial<EventHandler>).onEvent === "function";
}

export function receiveEvent(agent: EventHandler, event: WebhookEvent): EventOutcome | Promise<EventOutcome> {
  const receiver = agent as Partial<EventReceiver>;
  return receiver[RECEIVE_EVENT] === undefined ? agent.onEvent(event) : receiver[RECEIVE_EVENT](event);
}

/** True for a response that tells the sender that the event was refused. */
export function isRefusal(outcome: EventOutcome): boolean {
  return outcome instanceof Response && !outcome.ok;
}

/**
 * How the runtime hands a verified webhook to an agent: `onEvent`, unless a class between the user's and `Agent` has work of its own to do
 * around it (`WebhookAgent` keeps its books). A registered symbol, so that it is found whichever copy of the module the class came from.
 */
import type { AnyAgent, EventHandler, EventOutcome } from "./agent.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";

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

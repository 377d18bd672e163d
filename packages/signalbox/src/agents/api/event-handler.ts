/**
 * How the runtime passes a verified webhook to an agent: it calls `onEvent`, unless a class between the user's class and `Agent` defines
 * `RECEIVE_EVENT` (`WebhookAgent` does, to store each event). A registered symbol finds the method whichever copy of the module the class
 * came from.
 */
import type { WebhookEvent } from "../../contracts/webhook-event.ts";

/**
 * The result of `onEvent`. Undefined: processed (200). `"queued"`: the work is in the queue (202). A response: sent to the sender; a status
 * that is not 2xx refuses the event and rolls back what was written since the last await.
 */
export type EventOutcome = void | undefined | "queued" | Response;

/** Implemented by agents that handle verified webhooks; other agents receive them through `onRequest`. */
export interface EventHandler {
  onEvent(event: WebhookEvent): EventOutcome | Promise<EventOutcome>;
}

export const RECEIVE_EVENT: unique symbol = Symbol.for("signalbox.receive-event") as never;

export interface EventReceiver {
  [RECEIVE_EVENT](event: WebhookEvent): EventOutcome | Promise<EventOutcome>;
}

/** Delivers a verified webhook to an instance, as a turn. */
import type { DeliveryOutcome } from "../../contracts/agents-door.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { TurnTarget } from "./agent-turn.ts";
import { deliveryKey, handleEvent } from "./delivery-ledger.ts";
import type { SerialByKey } from "./serial-by-key.ts";

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

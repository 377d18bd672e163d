/** Delivers verified webhooks: each to its instance, as a turn. */
import { SignalboxError } from "@signalbox/protocol";
import type {
  AgentDeliveries,
  DeliveryOutcome,
  DeliveryTarget,
  SignedHeaders,
} from "../../contracts/agent-deliveries.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { TurnTarget } from "../instance/agent-turn.ts";
import { deliveryKey, handleEvent } from "../instance/handle-event.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import { checkInstanceName } from "../instance/instance-ref.ts";
import type { SerialByKey } from "../../core/serial.ts";

export function createAgentDeliveries(
  definitions: ReadonlyMap<string, AgentDefinition>,
  directory: Directory,
): AgentDeliveries {
  const get = (definition: AgentDefinition, { account, name }: DeliveryTarget) =>
    directory.get(definition, account, checkInstanceName(name));
  return {
    hasAgent: (agent) => definitions.has(agent),
    agentNames: () => definitions.keys(),
    prepare(target) {
      const definition = definitions.get(target.agent);
      try {
        if (definition !== undefined) get(definition, target);
      } catch {
        // The delivery will fail with the same error.
      }
    },
    async deliver(target, event, signed) {
      const definition = definitions.get(target.agent);
      if (definition === undefined) throw new SignalboxError("agent_not_found");
      return deliver(get(definition, target), event, signed);
    },
  };
}

interface WebhookTarget extends TurnTarget {
  /** As in `LiveAgentParts`. */
  readonly deliveries: SerialByKey | null;
  /** As in `Instance`. */
  readonly eventTimeoutMs: number;
}

function deliver(
  target: WebhookTarget,
  event: WebhookEvent,
  signed: SignedHeaders | undefined,
): Promise<DeliveryOutcome> {
  const { deliveries } = target;
  return deliveries === null
    ? runTurn(target, event, signed)
    : deliveries.run(deliveryKey(event), () => runTurn(target, event, signed));
}

function runTurn(
  target: WebhookTarget,
  event: WebhookEvent,
  signed: SignedHeaders | undefined,
): Promise<DeliveryOutcome> {
  return target.run({
    kind: "delivery",
    label: `${event.source} ${event.type}`,
    timeoutMs: target.eventTimeoutMs,
    cause: event,
    body: (live) => handleEvent(live, event, signed),
  });
}

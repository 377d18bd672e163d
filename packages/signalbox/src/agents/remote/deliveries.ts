/**
 * Webhook deliveries of a cluster: verified at the node where they arrive, run at the node that owns the instance.
 *
 * Invariants:
 * 1. A delivery that was sent to a node that was lost is sent again with the same id: the ledger of the instance knows whether it was handled.
 * 2. A node runs a delivery of another node itself or refuses it; it never passes it on.
 * 3. Deliveries of other nodes use at most as much memory as those of this node's own senders may.
 */
import { SignalboxError } from "@signalbox/protocol";
import type {
  AgentDeliveries,
  DeliveryOutcome,
  DeliveryTarget,
  SignedHeaders,
} from "../../contracts/agent-deliveries.ts";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import { overloaded } from "../../core/overload.ts";
import { Limit } from "../../core/limit.ts";
import { checkInstanceName } from "../instance/instance-ref.ts";
import type { NodeInc } from "../../core/node-inc.ts";
import type { Placement } from "../placement/placement.ts";
import { encodeFailure } from "./carried-error.ts";
import { decodeDelivery, decodeOutcome, encodeDelivery, encodeOutcome } from "./delivery-packet.ts";
import { explainFailure } from "./explain-failure.ts";

const DELIVER = "agents.deliver";

export interface DeliveryLimits {
  readonly maxInFlight: number;
  readonly maxBufferedBytes: number;
}

/** Delivers to instances of all nodes; `local` runs deliveries on this node. */
export function createClusterDeliveries(
  local: AgentDeliveries,
  network: NodeNetwork,
  placement: Placement,
): AgentDeliveries {
  return {
    hasAgent: (agent) => local.hasAgent(agent),
    agentNames: () => local.agentNames(),
    prepare(target) {
      const prepareHere = (node: NodeInc | null) => {
        if (node === null) local.prepare(target);
      };
      const found = placement.find(target);
      // The delivery will fail with the same error.
      if (found instanceof Promise) found.then(prepareHere, () => undefined);
      else prepareHere(found);
    },
    async deliver(target, event, signed) {
      if (!local.hasAgent(target.agent)) throw new SignalboxError("agent_not_found");
      checkInstanceName(target.name);
      return new Delivery(local, network, target, event, signed).reach(placement);
    },
  };
}

class Delivery {
  readonly #local: AgentDeliveries;
  readonly #network: NodeNetwork;
  readonly #event: WebhookEvent;
  readonly #signed: SignedHeaders | undefined;
  readonly ref: DeliveryTarget;
  #packet: Buffer | null = null;

  constructor(
    local: AgentDeliveries,
    network: NodeNetwork,
    ref: DeliveryTarget,
    event: WebhookEvent,
    signed: SignedHeaders | undefined,
  ) {
    this.#local = local;
    this.#network = network;
    this.ref = ref;
    this.#event = event;
    this.#signed = signed;
  }

  reach(placement: Placement): Promise<DeliveryOutcome> {
    return placement.reach<DeliveryOutcome>(this);
  }

  here(): Promise<DeliveryOutcome> {
    return this.#local.deliver(this.ref, this.#event, this.#signed).catch(repeat);
  }

  async there(node: NodeInc): Promise<DeliveryOutcome> {
    this.#packet ??= encodeDelivery({ target: this.ref, event: this.#event, signed: this.#signed });
    try {
      return decodeOutcome(await this.#network.call(node, DELIVER, this.#packet));
    } catch (error) {
      return repeat(error);
    }
  }
}

function repeat(error: unknown): never {
  throw explainFailure(error, true);
}

/** Runs deliveries that other nodes send to instances of this one. */
export function serveDeliveries(local: AgentDeliveries, network: NodeNetwork, limits: DeliveryLimits): void {
  const inFlight = new Limit(limits.maxInFlight);
  const bytes = new Limit(limits.maxBufferedBytes);
  network.serve(DELIVER, (payload) => {
    if (!inFlight.take()) return encodeFailure(overloaded());
    if (!bytes.take(payload.length)) {
      inFlight.release();
      return encodeFailure(overloaded());
    }
    return runDelivery(local, payload).finally(() => {
      inFlight.release();
      bytes.release(payload.length);
    });
  });
}

async function runDelivery(local: AgentDeliveries, payload: Buffer): Promise<Buffer> {
  try {
    const { target, event, signed } = decodeDelivery(payload);
    return encodeOutcome(await local.deliver(target, event, signed));
  } catch (error) {
    return encodeFailure(error);
  }
}

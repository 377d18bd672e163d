/** What the rest of the service may ask of the agent runtime. */
import type { WebhookEvent } from "./webhook-event.ts";

/** Where a delivery goes: the account of its source, the agent by its kebab-case name, the instance by its (already sanitised) name. */
export interface DeliveryTarget {
  readonly account: string;
  readonly agent: string;
  readonly name: string;
}

/**
 * How a delivery ended. All of them mean that the outcome is on stable storage.
 * `processed`: the agent's handler ran to its end. `queued`: the agent put the work in its durable queue. `duplicate`: the instance
 * had seen this delivery id before, and nothing ran. `answered`: an agent without event handling answered the request itself.
 */
export type DeliveryOutcome =
  | { readonly kind: "processed" }
  | { readonly kind: "queued" }
  | { readonly kind: "duplicate" }
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly contentType: string;
      readonly body: string;
    };

export interface AgentsDoor {
  hasAgent(agent: string): boolean;
  /** An event for the instance is about to come: brings it into memory, creating it if needed, and tells nobody if that fails. */
  prepare(target: DeliveryTarget): void;
  /**
   * Runs one verified event as a turn of the instance, creating the instance if needed. The ledger entry of the delivery id and what
   * the handler wrote since its last await are one transaction; concurrent copies of one delivery run once.
   * Throws `overloaded` when the instance's or the runtime's queue is full, and rethrows a handler's error after rolling back.
   */
  deliver(target: DeliveryTarget, event: WebhookEvent): Promise<DeliveryOutcome>;
}

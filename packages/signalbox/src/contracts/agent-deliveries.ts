/** What other areas use of the agent runtime. */
import type { WebhookEvent } from "./webhook-event.ts";

/** The instance of a delivery: the account of the source, the agent's kebab-case name, and the (already sanitised) name of the instance. */
export interface DeliveryTarget {
  readonly account: string;
  readonly agent: string;
  readonly name: string;
}

/**
 * How a delivery ended. Every outcome is durable.
 * `processed`: the agent's handler returned. `queued`: the agent added the work to its durable queue. `duplicate`: the instance had seen the
 * delivery id before, and nothing ran. `answered`: the agent returned a response of its own.
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

/** A delivery with all the headers that its sender sent, signatures included: for an agent that verifies deliveries itself. */
export interface SignedHeaders {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface AgentDeliveries {
  /** Whether there is the agent or object. An object must belong to the account, if one is given. */
  hasAgent(agent: string, account?: string): boolean;
  /** For "did you mean …?". */
  agentNames(): Iterable<string>;
  /** Loads the instance for an event that is about to arrive, creating it if needed. Failures are ignored. */
  prepare(target: DeliveryTarget): void;
  /**
   * Runs one verified event as a turn of the instance, creating the instance if needed. The ledger entry of the delivery id and what the
   * handler wrote since its last await are one transaction; concurrent duplicates of a delivery run once.
   * An agent without `onEvent` receives the delivery as an HTTP request, with the headers of `signed`.
   * Throws `overloaded` when the queue of the instance or the memory is full, and the handler's error after its rollback.
   */
  deliver(target: DeliveryTarget, event: WebhookEvent, signed?: SignedHeaders): Promise<DeliveryOutcome>;
}

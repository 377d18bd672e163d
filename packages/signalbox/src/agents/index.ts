export type { AgentsDoor, DeliveryOutcome, DeliveryTarget } from "./agents-door.ts";
export type { WebhookEvent } from "./webhook-event.ts";

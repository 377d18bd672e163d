export { createSampleRequest } from "./sample-delivery.ts";
export { createSources, readSecrets, type Source } from "./source.ts";
export { createWebhooksArea } from "./webhooks-area.ts";
export { type LastEvent, type Retention, WebhookAgent, type WebhookAgentState } from "./webhook-agent.ts";
export type { EventRow } from "./event-table.ts";

export { OutgoingWebhookError } from "./outgoing-webhook-error.ts";
export { newWebhookId, type OutgoingSender, OutgoingWebhooks } from "./outgoing-webhooks.ts";
export { standardKey } from "./standard-key.ts";

export { OutgoingWebhookError, parseRetryAfter } from "./outgoing-webhook-error.ts";
export { type OutgoingReply, type RequestSender } from "./outgoing-requests.ts";
export { signOutgoing } from "./sign-outgoing.ts";
export { newWebhookId, type OutgoingSender, OutgoingWebhooks } from "./outgoing-webhooks.ts";
export { standardKey } from "./standard-key.ts";

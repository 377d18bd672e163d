export { createSampleRequest } from "./sample-delivery.ts";
export { createSources, readSecrets, type Source } from "./source.ts";
export { createWebhooksArea } from "./webhooks-area.ts";

/** What an instance's own work calls when it is due: a method of its agent, or the runtime's sender of queued webhooks. */
import { QUEUED_WEBHOOK, type QueuedWebhook, sendQueuedWebhook } from "../work/queued-webhook.ts";
import type { Instance } from "./instance.ts";
import { invoke } from "./method-call.ts";

/** `about` is the queue item or schedule. Throws for a method that the class has lost since. */
export function callOwn(instance: Instance, method: string, payload: unknown, about: unknown): unknown {
  const { definition, environment } = instance;
  if (method === QUEUED_WEBHOOK)
    return sendQueuedWebhook(environment.outgoing, environment.variables, payload as QueuedWebhook);
  if (!definition.hasMethod(method)) throw new TypeError(`the agent has no method "${method}" any more`);
  return invoke(instance, method, [payload, about]);
}

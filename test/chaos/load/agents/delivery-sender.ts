/**
 * A sender of signed webhooks for some entities, one delivery after the other, each attempt at any node. As providers do, it repeats a delivery
 * under the same id until it is acknowledged.
 */
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { pick } from "../../../support/ledger/random.ts";
import { describe, send, wasKilled } from "../chaos-client.ts";
import { anyNode, type LoadContext, mayBeUnavailable } from "../workload.ts";
import type { ChainModel } from "./chain-model.ts";

export const WEBHOOK_SECRET = "webhook-secret-of-the-test-cluster";
/** Between two attempts. */
const MAX_RETRY_MS = 100;
const PADDING = "x".repeat(400);

/** Sends deliveries until the signal aborts. */
export async function sendDeliveries(
  context: LoadContext,
  models: readonly ChainModel[],
  sender: number,
  maxPauseMs: number,
): Promise<void> {
  for (let number = 1; !context.signal.aborted; number++) {
    await deliver(context, pick(context.random, models), `d-${sender}-${number}`);
    if (maxPauseMs > 0) await sleep(context.random() * maxPauseMs);
  }
}

async function deliver(context: LoadContext, model: ChainModel, id: string): Promise<void> {
  const { history, random, signal } = context;
  const body = JSON.stringify({ id, type: "load", padding: PADDING });
  const signature = `sha256=${createHmac("sha256", WEBHOOK_SECRET).update(body).digest("hex")}`;
  const headers = { "content-type": "application/json", "x-signature": signature };
  model.sending(id, "delivery");
  const startedAt = performance.now();
  while (!signal.aborted) {
    const outcome = await send(anyNode(context), {
      method: "POST",
      path: `/webhooks/chain/${model.name}`,
      text: body,
      headers,
    });
    if (outcome === null || wasKilled(outcome)) {
      await sleep(random() * MAX_RETRY_MS);
      continue;
    }
    if (outcome.status === 200 || outcome.status === 202) {
      model.acknowledged(id, outcome.status === 202);
      history.count("events acknowledged");
      history.count(`deliveries answered ${outcome.status}`);
      if ((outcome.body as { status?: string }).status === "duplicate")
        history.count("deliveries answered as duplicates");
      history.max("longest time until a delivery was acknowledged, ms", performance.now() - startedAt);
      return;
    }
    if (outcome.status === 503 && mayBeUnavailable(context, outcome))
      history.count("deliveries refused with 503");
    else history.violation(`a delivery failed: ${describe(outcome)}`);
    await sleep(random() * MAX_RETRY_MS);
  }
}

/**
 * A sender of signed webhooks for some entities, one delivery after the other, each attempt at any node. As providers do, it repeats a delivery
 * under the same id until it is acknowledged, also when it has waited long for an answer. So attempts of one delivery overlap.
 */
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, send, wasKilled } from "../chaos-client.ts";
import { LateAnswers } from "../late-answers.ts";
import { anyNode, type LoadContext, mayBeRefused } from "../workload.ts";
import type { ChainModel } from "./chain-model.ts";
import type { Entities } from "./entities.ts";

export const WEBHOOK_SECRET = "webhook-secret-of-the-test-cluster";
/** Between two attempts. */
const MAX_RETRY_MS = 100;
const PADDING = "x".repeat(400);

/** Sends deliveries until the signal aborts. */
export async function sendDeliveries(
  context: LoadContext,
  entities: Entities,
  sender: number,
  maxPauseMs: number,
): Promise<void> {
  const late = new LateAnswers();
  for (let number = 1; !context.signal.aborted; number++) {
    await entities.use(context.random, (model) => deliver(context, model, `d-${sender}-${number}`, late));
    if (maxPauseMs > 0) await sleep(context.random() * maxPauseMs);
  }
  await late.all();
}

async function deliver(
  context: LoadContext,
  model: ChainModel,
  id: string,
  late: LateAnswers,
): Promise<void> {
  const { history, random, signal } = context;
  const body = JSON.stringify({ id, type: "load", padding: PADDING });
  const signature = `sha256=${createHmac("sha256", WEBHOOK_SECRET).update(body).digest("hex")}`;
  const request = {
    method: "POST",
    path: `/webhooks/chain/${model.name}`,
    text: body,
    headers: { "content-type": "application/json", "x-signature": signature },
  };
  model.sending(id, "delivery");
  const startedAt = performance.now();
  let isAcknowledged = false;
  /** A late answer is of an attempt that has been repeated: both may be acknowledged. */
  const attempt = async (): Promise<void> => {
    const outcome = await send(anyNode(context), request);
    if (outcome === null || wasKilled(outcome)) return;
    const { status } = outcome;
    if (status === 200 || status === 202) {
      model.acknowledged(id, status === 202);
      if (!isAcknowledged) history.count("events acknowledged");
      isAcknowledged = true;
      history.count(`deliveries answered ${status}`);
      if ((outcome.body as { status?: string }).status === "duplicate")
        history.count("deliveries answered as duplicates");
      history.max("longest time until a delivery was acknowledged, ms", performance.now() - startedAt);
    } else if (mayBeRefused(context, outcome)) history.count(`deliveries refused with ${status}`);
    else history.violation(`a delivery failed: ${describe(outcome)}`);
  };
  for (let repetition = 0; !signal.aborted; repetition++) {
    await late.soon(attempt(), repetition);
    if (isAcknowledged) return;
    await sleep(random() * MAX_RETRY_MS);
  }
}

/**
 * A caller of the methods of some entities over HTTP, each call at any node. A call whose outcome is unknown is not repeated: it may have taken
 * place, once.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { pick } from "../../../support/ledger/random.ts";
import { ROOT_TOKEN } from "../../../support/root-token.ts";
import { describe, type Outcome, send, wasKilled } from "../chaos-client.ts";
import { LateAnswers } from "../late-answers.ts";
import { anyNode, type LoadContext, mayBeRefused } from "../workload.ts";
import type { ChainAnswer, EventKind } from "./chain-agent.ts";
import type { ChainModel } from "./chain-model.ts";
import type { Entities } from "./entities.ts";
import type { LoadTarget } from "../../cluster/load-target.ts";

/** The share of the work is small: a schedule lives for a second. */
const METHODS = ["append", "append", "read", "read", "read", "appendAndQueue", "appendAndSchedule"] as const;
const KINDS: Readonly<Partial<Record<(typeof METHODS)[number], EventKind>>> = {
  append: "call",
  appendAndQueue: "queue",
  appendAndSchedule: "schedule",
};
/** A client that finds a node down waits before its next attempt. */
const DOWN_MS = 50;
export const AUTHORIZATION = { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" };

export async function callMethods(
  context: LoadContext,
  entities: Entities,
  caller: number,
  maxPauseMs: number,
): Promise<void> {
  const { random, signal } = context;
  const late = new LateAnswers();
  for (let number = 1; !signal.aborted; number++) {
    const method = pick(random, METHODS);
    await entities.use(random, async (model) => {
      await late.soon(call(context, model, method, `c-${caller}-${number}`));
    });
    if (maxPauseMs > 0) await sleep(random() * maxPauseMs);
  }
  await late.all();
}

async function call(
  context: LoadContext,
  model: ChainModel,
  method: (typeof METHODS)[number],
  id: string,
): Promise<void> {
  const { history } = context;
  const node = anyNode(context);
  if (node.url === null) {
    await sleep(DOWN_MS);
    return;
  }
  const before = model.known;
  const kind = KINDS[method];
  if (kind !== undefined) model.sending(id, kind);
  const outcome = await callMethod(node, model.name, method, kind === undefined ? [] : [id]);
  if (outcome === null || wasKilled(outcome)) return;
  if (outcome.status === 200) {
    const { result } = outcome.body as { result: ChainAnswer };
    model.answered(result, before, outcome.node.name);
    if (kind === undefined) history.count("agents' reads answered");
    else {
      model.acknowledged(id);
      history.count("events acknowledged");
      history.count(`calls of ${method} answered`);
    }
    return;
  }
  if (mayBeRefused(context, outcome)) history.count(`agents' calls refused with ${outcome.status}`);
  else history.violation(`an agent's call failed: ${method} ${describe(outcome)}`);
}

export function callMethod(
  node: LoadTarget,
  name: string,
  method: string,
  args: readonly unknown[],
): Promise<Outcome | null> {
  return send(node, {
    method: "POST",
    path: `/agents/chain/${name}/rpc/${method}`,
    text: JSON.stringify(args),
    headers: AUTHORIZATION,
  });
}

/**
 * Calls of a gateway without limits, with a token that every node knows.
 *
 * Rules:
 * 1. A call to a living node succeeds, whatever happens to PostgreSQL and to the other nodes, for `maxStaleMs`.
 * 2. Every finished call is in the log once (`CallRecord`).
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { CallRecord } from "./call-record.ts";
import { describe, type Outcome, request, wasKilled } from "./chaos-client.ts";
import { callBody } from "./provider.ts";
import { anyNode, mayBeStale, type LoadContext, type Workload } from "./workload.ts";

const CLIENTS = 6;
const MAX_PAUSE_MS = 60;
const GATEWAY = "open";

export class CallLoad implements Workload {
  readonly name = "calls";
  readonly needed = ["calls answered", "calls finished", "calls listed"];
  readonly record: CallRecord;
  readonly #context: LoadContext;
  #token = "";

  constructor(context: LoadContext, record: CallRecord) {
    this.#context = context;
    this.record = record;
  }

  async prepare(): Promise<void> {
    const [node] = this.#context.nodes;
    if (node === undefined) throw new Error("no nodes");
    const body = { id: GATEWAY, authentication: true };
    await mustSucceed(request(node, { method: "POST", path: "/accounts/default/ai-gateway/gateways", body }));
    const token = { name: "load", permissions: ["gateway.run"] };
    const answer = await mustSucceed(
      request(node, { method: "POST", path: "/accounts/default/tokens", body: token }),
    );
    this.#token = (answer.body as { result: { token: string } }).result.token;
  }

  clients(): Promise<void>[] {
    return Array.from({ length: CLIENTS }, () => this.#client());
  }

  async settle(): Promise<void> {
    await this.record.settle();
  }

  async #client(): Promise<void> {
    const { random, signal } = this.#context;
    while (!signal.aborted) {
      await this.#call();
      await sleep(random() * MAX_PAUSE_MS);
    }
  }

  async #call(): Promise<void> {
    const { history } = this.#context;
    const outcome = await request(anyNode(this.#context), callOf(GATEWAY, this.#token));
    if (outcome === null || wasKilled(outcome)) {
      history.count("calls to a node that was down");
    } else if (outcome.status === 200) {
      history.count("calls answered");
      this.record.add(GATEWAY, outcome);
    } else if (outcome.status === 503 && mayBeStale(this.#context, outcome)) {
      history.count("calls refused by a node that was isolated too long");
    } else history.violation(`a call failed: ${describe(outcome)}`);
  }
}

export function callOf(gateway: string, token: string | null) {
  return {
    method: "POST",
    path: `/v1/default/${gateway}/openai/chat/completions`,
    body: callBody(gateway),
    headers: {
      authorization: "Bearer key-of-a-provider",
      ...(token === null ? {} : { "cf-aig-authorization": `Bearer ${token}` }),
    },
  };
}

/** For requests while all nodes are healthy. */
export async function mustSucceed(sent: Promise<Outcome | null>): Promise<Outcome> {
  const outcome = await sent;
  if (outcome === null) throw new Error("the node is down");
  if (outcome.status !== 200) throw new Error(describe(outcome));
  return outcome;
}

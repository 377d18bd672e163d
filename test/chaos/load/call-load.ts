/**
 * Calls of a gateway without limits, with a token that every node knows.
 *
 * Rules:
 * 1. A call to a living node succeeds, whatever happens to PostgreSQL and to the other nodes, for `maxStaleMs`.
 * 2. Every finished call is in the log once (`CallRecord`), and without a fault it is listed at any node when its answer has arrived.
 * 3. The provider sees a call at most once, and once if it was answered.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { CallRecord } from "./call-record.ts";
import { describe, logIdOf, type Outcome, request, wasKilled } from "./chaos-client.ts";
import { callBody, type CountingProvider } from "./provider.ts";
import {
  anyNode,
  isDisturbed,
  mayBeStale,
  mayBeUnavailable,
  type LoadContext,
  type Workload,
} from "./workload.ts";

const CLIENTS = 6;
const MAX_PAUSE_MS = 60;
const GATEWAY = "open";
/** Share of the calls whose row is read when they are answered. */
const LISTED_AT_ONCE = 0.1;

export class CallLoad implements Workload {
  readonly name = "calls";
  readonly needed = ["calls answered", "calls finished", "calls listed"];
  readonly warmUp = ["calls answered", "calls listed at once"];
  readonly record: CallRecord;
  readonly #context: LoadContext;
  readonly #provider: CountingProvider;
  #token = "";
  #sent = 0;
  #answered = 0;

  constructor(context: LoadContext, provider: CountingProvider, record: CallRecord) {
    this.#context = context;
    this.#provider = provider;
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
    const seen = this.#provider.calls(GATEWAY);
    if (seen > this.#sent || seen < this.#answered)
      this.#context.history.violation(
        `the provider saw ${seen} calls; ${this.#sent} were sent, ${this.#answered} answered`,
      );
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
    const node = anyNode(this.#context);
    if (node.url !== null) this.#sent += 1;
    const outcome = await request(node, callOf(GATEWAY, this.#token));
    if (outcome === null || wasKilled(outcome)) {
      history.count("calls to a node that was down");
    } else if (outcome.status === 200) {
      history.count("calls answered");
      this.#answered += 1;
      this.record.add(GATEWAY, outcome);
      if (this.#context.random() < LISTED_AT_ONCE) await this.#checkListed(outcome);
    } else if (outcome.status === 503 && mayBeStale(this.#context, outcome)) {
      history.count("calls refused by a node that was isolated too long");
    } else history.violation(`a call failed: ${describe(outcome)}`);
  }

  async #checkListed(call: Outcome): Promise<void> {
    const { history } = this.#context;
    const path = `/accounts/default/ai-gateway/gateways/${GATEWAY}/logs?per_page=50&order_by=created_at&order_by_direction=desc`;
    const list = await request(anyNode(this.#context), { method: "GET", path });
    // A node that was lost or cut off meanwhile could not be asked for its rows.
    if (list === null || isDisturbed(this.#context, { ...list, startedAt: call.startedAt })) return;
    if (list.status !== 200) {
      if (list.status !== 503 || !mayBeUnavailable(this.#context, list))
        history.violation(`the log cannot be read: ${describe(list)}`);
      return;
    }
    history.count("calls listed at once");
    const id = logIdOf(call);
    const { result } = list.body as { result: { id: string }[] };
    if (!result.some((row) => row.id === id))
      history.violation(`the call ${id} at ${call.node.name} is not listed at ${list.node.name}`);
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

/**
 * Tokens, created, used and revoked, each request at any node.
 *
 * Rules:
 * 1. A token is accepted at every node as soon as its creation was answered.
 * 2. A token is refused at every node as soon as its revocation was answered. The exception is a node that was cut off from PostgreSQL, and
 *    was declared dead therefore: it may accept the token for `maxStaleMs` after it was cut off.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { callOf, mustSucceed } from "./call-load.ts";
import { describe, type Outcome, request, wasKilled } from "./chaos-client.ts";
import { anyNode, mayBeDead, mayBeStale, type LoadContext, type Workload } from "./workload.ts";

const CLIENTS = 3;
const USES = 4;
const MAX_PAUSE_MS = 50;
const GATEWAY = "guarded";
const PATH = "/accounts/default/tokens";

export class TokenLoad implements Workload {
  readonly name = "tokens";
  readonly needed = ["tokens revoked", "revoked tokens refused"];
  readonly #context: LoadContext;

  constructor(context: LoadContext) {
    this.#context = context;
  }

  async prepare(): Promise<void> {
    const [node] = this.#context.nodes;
    if (node === undefined) throw new Error("no nodes");
    const body = { id: GATEWAY, authentication: true };
    await mustSucceed(request(node, { method: "POST", path: "/accounts/default/ai-gateway/gateways", body }));
  }

  clients(): Promise<void>[] {
    return Array.from({ length: CLIENTS }, () => this.#client());
  }

  async settle(): Promise<void> {
    // Every rule is checked at once.
  }

  async #client(): Promise<void> {
    const { signal, random } = this.#context;
    while (!signal.aborted) {
      await this.#live();
      await sleep(random() * MAX_PAUSE_MS);
    }
  }

  /** The life of one token. */
  async #live(): Promise<void> {
    const { history } = this.#context;
    const body = { name: "t", permissions: ["gateway.run"], gateway_id: GATEWAY };
    const created = await request(anyNode(this.#context), { method: "POST", path: PATH, body });
    if (created?.status !== 200) {
      this.#checkFailure("creation", created);
      return;
    }
    history.count("tokens created");
    const { id, token } = (created.body as { result: { id: string; token: string } }).result;
    for (let i = 0; i < USES; i++) this.#checkAccepted(await this.#use(token), created);
    const revoked = await request(anyNode(this.#context), { method: "DELETE", path: `${PATH}/${id}` });
    if (revoked?.status !== 200) {
      this.#checkFailure("revocation", revoked);
      return;
    }
    history.count("tokens revoked");
    const uses = this.#context.nodes.map(async (node) => request(node, callOf(GATEWAY, token)));
    for (const use of await Promise.all(uses)) this.#checkRefused(use, revoked);
  }

  #use(token: string): Promise<Outcome | null> {
    return request(anyNode(this.#context), callOf(GATEWAY, token));
  }

  #checkAccepted(outcome: Outcome | null, created: Outcome): void {
    const { history } = this.#context;
    if (outcome === null || wasKilled(outcome)) return;
    const { status } = outcome;
    if (status === 200) history.count("tokens accepted");
    else if (status === 401 && mayBeDead(outcome)) history.count("new tokens refused by an isolated node");
    else if (status === 503 && mayBeStale(this.#context, outcome))
      history.count("tokens refused by a stale node");
    else {
      const agoMs = Math.round(outcome.startedAt - created.endedAt);
      history.violation(
        `a valid token was not accepted: ${describe(outcome)}; created ${agoMs} ms before at ${created.node.name}`,
      );
    }
  }

  #checkRefused(outcome: Outcome | null, revoked: Outcome): void {
    const { history, maxStaleMs } = this.#context;
    if (outcome === null || wasKilled(outcome)) return;
    const { node, startedAt, endedAt, status } = outcome;
    const isolatedMs = node.isolation.longestWithin(startedAt, endedAt);
    if (status === 401 || status === 503) history.count("revoked tokens refused");
    else if (status === 200 && mayBeDead(outcome) && isolatedMs <= maxStaleMs)
      history.count("revoked tokens accepted by an isolated node");
    else
      history.violation(
        `a revoked token was used: ${describe(outcome)}; isolated for ${isolatedMs} ms; revoked at ${revoked.node.name}`,
      );
  }

  #checkFailure(what: string, outcome: Outcome | null): void {
    const { history } = this.#context;
    if (outcome === null || wasKilled(outcome)) return;
    if (outcome.status === 503) history.count(`token ${what} without PostgreSQL`);
    else history.violation(`the ${what} of a token failed: ${describe(outcome)}`);
  }
}

/**
 * Tokens, created, used and revoked, each request at any node.
 *
 * Rules:
 * 1. A token is accepted at every node as soon as its creation was answered.
 * 2. A token is refused at every node as soon as its revocation was answered, and for ever. The exception is a node that was cut off from
 *    PostgreSQL, and was declared dead therefore: until it is ready again it may accept the token, for `maxStaleMs` after it was cut off.
 * 3. A revocation that failed can be repeated, and succeeds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { pick } from "../../support/ledger/random.ts";
import { callOf, mustSucceed } from "./call-load.ts";
import { describe, type Outcome, request, wasKilled } from "./chaos-client.ts";
import {
  anyNode,
  mayBeStale,
  mayBeUnavailable,
  mayLack,
  type LoadContext,
  type Workload,
} from "./workload.ts";

const CLIENTS = 3;
const USES = 4;
const MAX_PAUSE_MS = 50;
const GATEWAY = "guarded";
const PATH = "/accounts/default/tokens";

interface Revoked {
  readonly token: string;
  readonly change: Outcome;
}

export class TokenLoad implements Workload {
  readonly name = "tokens";
  readonly needed = [
    "tokens accepted",
    "tokens revoked",
    "revoked tokens refused",
    "revoked tokens refused later",
  ];
  readonly warmUp = this.needed;
  readonly #context: LoadContext;
  readonly #revoked: Revoked[] = [];

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
    return [
      ...Array.from({ length: CLIENTS }, () => this.#repeat(() => this.#live())),
      this.#repeat(() => this.#reuse()),
    ];
  }

  /** No node accepts any revoked token. */
  async settle(): Promise<void> {
    for (const { token, change } of this.#revoked) {
      for (const node of this.#context.nodes) {
        const use = await request(node, callOf(GATEWAY, token));
        if (use?.status !== 401)
          this.#context.history.violation(
            `a revoked token is not refused at the end: ${use === null ? node.name : describe(use)}; revoked at ${change.node.name}`,
          );
      }
    }
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    const { signal, random } = this.#context;
    while (!signal.aborted) {
      await work();
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
    for (let i = 0; i < USES; i++) await this.#checkAccepted(await this.#use(token), created);
    const change = await this.#revoke(id);
    if (change === null) return;
    history.count("tokens revoked");
    this.#revoked.push({ token, change });
    const uses = this.#context.nodes.map(async (node) => request(node, callOf(GATEWAY, token)));
    for (const use of await Promise.all(uses))
      await this.#checkRefused(use, change, "revoked tokens refused");
  }

  /** A node must not remember an old token, for example after a restart. */
  async #reuse(): Promise<void> {
    const { random } = this.#context;
    if (this.#revoked.length === 0) return;
    const { token, change } = pick(random, this.#revoked);
    await this.#checkRefused(await this.#use(token), change, "revoked tokens refused later");
  }

  /** Repeats a revocation that failed. Null if the run ended before it succeeded. */
  async #revoke(id: string): Promise<Outcome | null> {
    const { signal, random } = this.#context;
    let isRepeated = false;
    while (!signal.aborted) {
      const outcome = await request(anyNode(this.#context), { method: "DELETE", path: `${PATH}/${id}` });
      if (outcome?.status === 200) return outcome;
      // The first attempt took place.
      if (outcome?.status === 404 && isRepeated) return outcome;
      this.#checkFailure("revocation", outcome);
      isRepeated = true;
      await sleep(random() * MAX_PAUSE_MS);
    }
    return null;
  }

  #use(token: string): Promise<Outcome | null> {
    return request(anyNode(this.#context), callOf(GATEWAY, token));
  }

  async #checkAccepted(outcome: Outcome | null, created: Outcome): Promise<void> {
    const { history } = this.#context;
    if (outcome === null || wasKilled(outcome)) return;
    const { status } = outcome;
    if (status === 200) history.count("tokens accepted");
    else if (status === 503 && mayBeStale(this.#context, outcome))
      history.count("tokens refused by a stale node");
    else if (status === 401 && (await mayLack(this.#context, created, outcome)))
      history.count("new tokens refused by a dead node");
    else {
      const agoMs = Math.round(outcome.startedAt - created.endedAt);
      history.violation(
        `a valid token was not accepted: ${describe(outcome)}; created ${agoMs} ms before at ${created.node.name}`,
      );
    }
  }

  async #checkRefused(outcome: Outcome | null, change: Outcome, counted: string): Promise<void> {
    const { history, maxStaleMs } = this.#context;
    if (outcome === null || wasKilled(outcome)) return;
    const { node, startedAt, endedAt, status } = outcome;
    const isolatedMs = node.isolation.longestWithin(startedAt, endedAt);
    if (status === 401) history.count(counted);
    else if (status === 503 && mayBeStale(this.#context, outcome))
      history.count("tokens refused by a stale node");
    else if (status === 200 && isolatedMs <= maxStaleMs && (await mayLack(this.#context, change, outcome)))
      history.count("revoked tokens accepted by a dead node");
    else {
      const agoMs = Math.round(startedAt - change.endedAt);
      history.violation(
        `a revoked token was used: ${describe(outcome)}; isolated for ${isolatedMs} ms; revoked ${agoMs} ms before at ${change.node.name}`,
      );
    }
  }

  #checkFailure(what: string, outcome: Outcome | null): void {
    const { history } = this.#context;
    if (outcome === null || wasKilled(outcome)) return;
    if (outcome.status === 503 && mayBeUnavailable(this.#context, outcome))
      history.count(`token ${what} without PostgreSQL`);
    else history.violation(`the ${what} of a token failed: ${describe(outcome)}`);
  }
}

/**
 * Calls of gateways with limits, in rounds: each round creates a gateway and sends more calls than its limit allows, at all nodes at once.
 *
 * Rules:
 * 1. The provider never sees more calls, or bills more, than the limit of the gateway allows.
 * 2. If nothing failed in a round, it sees exactly as many calls as a rate limit allows, and as many as a spend limit allows until a further
 *    call could exceed it.
 * 3. A call is answered 200, refused 429, or, while there is a fault and the node cannot count it, 503.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../support/ledger/random.ts";
import { pick } from "../../support/ledger/random.ts";
import { callOf } from "./call-load.ts";
import type { CallRecord } from "./call-record.ts";
import { describe, type Outcome, request, wasKilled } from "./chaos-client.ts";
import { CALL_COST, type CountingProvider, reservationOf } from "./provider.ts";
import { anyNode, mayBeUnavailable, mayLack, type LoadContext, type Workload } from "./workload.ts";

const CALLERS = 8;
/** Longer than a run. A fixed window of this length has at least half of itself left, so that the limit applies to the whole round. */
function intervalS(): number {
  let seconds = 24 * 3600;
  while (Date.now() % (seconds * 1000) > seconds * 500) seconds -= 1;
  return seconds;
}

/** A node reports what its calls have cost within 100 ms, and more on a busy machine; until then others may refuse a call that would fit. */
const REPORTED_MS = 250;
const LAST_ATTEMPTS = 6;
/** For the rest of a limit, on a machine that is so busy that reports take long. */
const MAX_REPORTED_MS = 20_000;

interface Limit {
  readonly settings: object;
  /** Calls that may reach the provider. */
  readonly maxCalls: number;
  /** Calls of this gateway that reach it if nothing fails. */
  minCalls(gateway: string): number;
}

function rateLimit(random: Random): Limit {
  const maxCalls = 10 + Math.floor(random() * 40);
  return {
    settings: {
      rate_limiting_limit: maxCalls,
      rate_limiting_interval: intervalS(),
      rate_limiting_technique: pick(random, ["fixed", "sliding"]),
    },
    maxCalls,
    minCalls: () => maxCalls,
  };
}

function spendLimit(random: Random): Limit {
  const maxCalls = 15 + Math.floor(random() * 20);
  const limit = maxCalls * CALL_COST;
  const rule = { id: "r", limitType: "cost", limit, window: null };
  return {
    settings: { spend_limits: { rules: [rule] } },
    maxCalls,
    // A call is admitted if what it could cost at most is left.
    minCalls: (gateway) => Math.floor((limit - reservationOf(gateway)) / CALL_COST) + 1,
  };
}

export class LimitLoad implements Workload {
  readonly name = "limits";
  readonly needed = [
    "limited calls passed",
    "limited calls refused",
    "rounds of limits",
    "rounds of rate limits without a failure",
    "rounds of spend limits without a failure",
  ];
  readonly warmUp = this.needed;
  readonly #context: LoadContext;
  readonly #provider: CountingProvider;
  readonly #record: CallRecord;
  readonly #rounds = new Map<string, Limit>();
  #next = 1;

  constructor(context: LoadContext, provider: CountingProvider, record: CallRecord) {
    this.#context = context;
    this.#provider = provider;
    this.#record = record;
  }

  async prepare(): Promise<void> {
    // Each round creates its gateway.
  }

  clients(): Promise<void>[] {
    return [this.#runRounds("rate", rateLimit), this.#runRounds("spend", spendLimit)];
  }

  /** Calls that were on their way when a round ended have arrived by now. */
  async settle(): Promise<void> {
    for (const [gateway, limit] of this.#rounds) this.#check(gateway, limit);
  }

  async #runRounds(name: string, kind: (random: Random) => Limit): Promise<void> {
    const { signal, random, history } = this.#context;
    while (!signal.aborted) {
      const gateway = `limit-${this.#next++}`;
      const limit = kind(random);
      const created = await this.#create(gateway, limit);
      if (created === null) continue;
      this.#rounds.set(gateway, limit);
      let isSound = true;
      let left = limit.maxCalls * 2;
      const caller = async () => {
        while (left-- > 0 && !signal.aborted)
          isSound = (await this.#call(gateway, created)) !== "failed" && isSound;
      };
      await Promise.all(Array.from({ length: CALLERS }, caller));
      // Calls in progress hold what they could cost, so calls one after the other use the rest.
      const deadline = performance.now() + MAX_REPORTED_MS;
      const isRestDue = () =>
        this.#provider.calls(gateway) < limit.minCalls(gateway) && performance.now() < deadline;
      for (let refused = 0; (refused < LAST_ATTEMPTS || isRestDue()) && isSound && !signal.aborted;) {
        const result = await this.#call(gateway, created);
        isSound = result !== "failed";
        if (result === "refused") {
          refused += 1;
          await sleep(REPORTED_MS);
        }
      }
      history.count("rounds of limits");
      this.#check(gateway, limit);
      if (isSound && !signal.aborted) {
        history.count(`rounds of ${name} limits without a failure`);
        const passed = this.#provider.calls(gateway);
        if (passed < limit.minCalls(gateway))
          history.violation(
            `${gateway}: only ${passed} calls passed, ${limit.minCalls(gateway)} are allowed: ${JSON.stringify(limit.settings)}`,
          );
      }
    }
  }

  /** Null if it failed: each round has another gateway. */
  async #create(gateway: string, { settings }: Limit): Promise<Outcome | null> {
    const path = "/accounts/default/ai-gateway/gateways";
    const body = { id: gateway, ...settings };
    const outcome = await request(anyNode(this.#context), { method: "POST", path, body });
    if (outcome === null || wasKilled(outcome)) return null;
    if (outcome.status === 200) return outcome;
    if (outcome.status !== 503 || !mayBeUnavailable(this.#context, outcome))
      this.#context.history.violation(`the creation of a gateway failed: ${describe(outcome)}`);
    return null;
  }

  /** If a call failed, a permit may be lost with it. */
  async #call(gateway: string, created: Outcome): Promise<"passed" | "refused" | "failed"> {
    const { history } = this.#context;
    const outcome = await request(anyNode(this.#context), callOf(gateway, null));
    if (outcome === null || wasKilled(outcome)) return "failed";
    if (outcome.status === 200) {
      history.count("limited calls passed");
      this.#record.add(gateway, outcome);
      return "passed";
    }
    if (outcome.status === 429) {
      history.count("limited calls refused");
      return "refused";
    }
    if (outcome.status === 503 && mayBeUnavailable(this.#context, outcome))
      history.count("limited calls that could not be counted");
    else if (outcome.status === 400 && (await mayLack(this.#context, created, outcome)))
      history.count("new gateways unknown to a dead node");
    else history.violation(`a limited call failed: ${describe(outcome)}`);
    return "failed";
  }

  #check(gateway: string, { maxCalls }: Limit): void {
    const passed = this.#provider.calls(gateway);
    if (passed > maxCalls)
      this.#context.history.violation(
        `${gateway}: the provider saw ${passed} calls, ${maxCalls} are allowed: ${JSON.stringify(this.#rounds.get(gateway)?.settings)}`,
      );
  }
}

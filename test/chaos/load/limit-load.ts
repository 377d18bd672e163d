/**
 * Calls of gateways with limits, in rounds: each round creates a gateway and sends more calls than its limit allows, at all nodes at once.
 *
 * Rules:
 * 1. The provider never sees more calls, or bills more, than the limit of the gateway allows.
 * 2. If nothing failed in a round, it sees exactly as many calls as a rate limit allows.
 * 3. A call is answered 200, refused 429, or, while the node cannot count it, 503.
 */
import type { Random } from "../../support/ledger/random.ts";
import { pick } from "../../support/ledger/random.ts";
import { callOf } from "./call-load.ts";
import type { CallRecord } from "./call-record.ts";
import { describe, request, wasKilled } from "./chaos-client.ts";
import { CALL_COST, type CountingProvider } from "./provider.ts";
import { anyNode, mayBeDead, type LoadContext, type Workload } from "./workload.ts";

const CALLERS = 8;
/** Longer than a run, so that the limit applies to the whole round. */
const INTERVAL_S = 24 * 3600;

interface Limit {
  readonly settings: object;
  /** Calls that may reach the provider. */
  readonly maxCalls: number;
  readonly isExact: boolean;
}

function rateLimit(random: Random): Limit {
  const maxCalls = 10 + Math.floor(random() * 40);
  return {
    settings: {
      rate_limiting_limit: maxCalls,
      rate_limiting_interval: INTERVAL_S,
      rate_limiting_technique: pick(random, ["fixed", "sliding"]),
    },
    maxCalls,
    isExact: true,
  };
}

function spendLimit(random: Random): Limit {
  const maxCalls = 10 + Math.floor(random() * 20);
  const limit = maxCalls * CALL_COST;
  const rule = { id: "r", limitType: "cost", limit, window: null };
  // Calls in progress hold reservations, so the last calls may be refused although the money is not spent.
  return { settings: { spend_limits: { rules: [rule] } }, maxCalls, isExact: false };
}

export class LimitLoad implements Workload {
  readonly name = "limits";
  readonly needed = ["limited calls passed", "limited calls refused", "rounds of limits"];
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
    return [this.#runRounds(rateLimit), this.#runRounds(spendLimit)];
  }

  /** Calls that were on their way when a round ended have arrived by now. */
  async settle(): Promise<void> {
    for (const [gateway, limit] of this.#rounds) this.#check(gateway, limit);
  }

  async #runRounds(kind: (random: Random) => Limit): Promise<void> {
    const { signal, random, history } = this.#context;
    while (!signal.aborted) {
      const gateway = `limit-${this.#next++}`;
      const limit = kind(random);
      if (!(await this.#create(gateway, limit))) continue;
      this.#rounds.set(gateway, limit);
      let isSound = true;
      let left = limit.maxCalls * 2;
      const caller = async () => {
        while (left-- > 0 && !signal.aborted) isSound = (await this.#call(gateway)) && isSound;
      };
      await Promise.all(Array.from({ length: CALLERS }, caller));
      history.count("rounds of limits");
      this.#check(gateway, limit);
      const passed = this.#provider.calls(gateway);
      if (limit.isExact && isSound && left < 0 && !signal.aborted) {
        history.count("rounds without a failure");
        if (passed !== limit.maxCalls)
          history.violation(`${gateway}: ${passed} calls passed, although ${limit.maxCalls} were allowed`);
      }
    }
  }

  async #create(gateway: string, { settings }: Limit): Promise<boolean> {
    const path = "/accounts/default/ai-gateway/gateways";
    const body = { id: gateway, ...settings };
    const outcome = await request(anyNode(this.#context), { method: "POST", path, body });
    return outcome?.status === 200;
  }

  /** Returns false if the call failed: then a permit may be lost with it. */
  async #call(gateway: string): Promise<boolean> {
    const { history } = this.#context;
    const outcome = await request(anyNode(this.#context), callOf(gateway, null));
    if (outcome === null || wasKilled(outcome)) return false;
    switch (outcome.status) {
      case 200:
        history.count("limited calls passed");
        this.#record.add(gateway, outcome);
        return true;
      case 429:
        history.count("limited calls refused");
        return true;
      case 503:
        history.count("limited calls that could not be counted");
        return false;
      case 400:
        // A node that was declared dead does not know new gateways.
        if (mayBeDead(outcome)) {
          history.count("new gateways unknown to an isolated node");
          return false;
        }
        history.violation(`a limited call failed: ${describe(outcome)}`);
        return false;
      default:
        history.violation(`a limited call failed: ${describe(outcome)}`);
        return false;
    }
  }

  #check(gateway: string, { maxCalls }: Limit): void {
    const passed = this.#provider.calls(gateway);
    if (passed > maxCalls)
      this.#context.history.violation(
        `${gateway}: the provider saw ${passed} calls, ${maxCalls} are allowed: ${JSON.stringify(this.#rounds.get(gateway)?.settings)}`,
      );
  }
}

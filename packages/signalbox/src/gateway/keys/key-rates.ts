/**
 * The rate limits of provider keys over all nodes that share a database, in the ledger of the other limits. A process that is alone counts in the
 * health of each key instead: its period begins with the first call.
 */
import type { ActiveRule } from "../limits/call-rules.ts";
import type { Ledger, Taken } from "../limits/ledger.ts";
import type { LimitRule } from "../limits/limit-rule.ts";
import { accountOwner, gatewayOwner } from "../limits/limits.ts";
import { createRateWindow } from "../limits/window.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { ProviderKey } from "./provider-key.ts";

const ANY_STEP = { provider: "", model: "" };

export class KeyRates {
  readonly #ledger: Pick<Ledger, "take" | "takeNow" | "bucketsOf">;
  /** A key that was edited is another object. */
  readonly #rules = new WeakMap<ProviderKey, ActiveRule>();

  constructor(ledger: Pick<Ledger, "take" | "takeNow" | "bucketsOf">) {
    this.#ledger = ledger;
  }

  /** Counts a call with the key. There is nothing to give back. */
  take(key: ProviderKey, gateway: Gateway, isNow: boolean): Taken | Promise<Taken> {
    let active = this.#rules.get(key);
    if (active === undefined) {
      const rule = toRule(key, gateway);
      active = { rule, buckets: this.#ledger.bucketsOf(rule) };
      this.#rules.set(key, active);
    }
    const need = {
      rule: active.rule,
      bucket: active.buckets.find(null),
      amount: 1,
      expected: 1,
      isBounded: true,
      runsAlone: false,
      isForced: false,
      step: ANY_STEP,
    };
    return isNow ? this.#ledger.takeNow([need]) : this.#ledger.take([need]);
  }
}

function toRule(key: ProviderKey, gateway: Gateway): LimitRule {
  const limit = key.rateLimit ?? 0;
  return {
    owner: key.gatewayId === null ? accountOwner(key.accountId) : gatewayOwner(gateway),
    // No id of a spend rule contains a slash.
    id: `/keys/${key.id}`,
    name: key.alias || key.id,
    kind: "requests",
    limit,
    window: createRateWindow(limit, key.rateLimitPeriodS, "fixed"),
    isSoft: false,
    conditions: null,
  };
}

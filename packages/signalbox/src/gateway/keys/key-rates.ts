/**
 * The rate limits of provider keys over all nodes that share a database, in the buckets of the other limits. A process that is alone counts in
 * the health of each key instead, which never has to wait.
 */
import type { SignalboxError } from "@signalbox/protocol";
import type { Claim } from "../limits/claim.ts";
import { Delay } from "../step/delay.ts";
import type { LimitRule } from "../limits/limit-rule.ts";
import { accountOwner, gatewayOwner, type Limits } from "../limits/limits.ts";
import type { ShareExchange } from "../limits/share-exchange.ts";
import type { SharedBucket } from "../limits/shared-bucket.ts";
import { createRateWindow } from "../limits/window.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { ProviderKey } from "./provider-key.ts";

/** What one step of a call waits for. */
export interface PendingRate {
  claim: { readonly keyId: string; readonly claim: Claim } | null;
}

export interface KeyRefusal {
  /** More than 0. */
  readonly waitMs: number;
  /** Why the rate could not be checked. */
  readonly error: SignalboxError | null;
}

/** While rates cannot be read. */
const RETRY_MS = 1000;
const ONE_CALL = {
  partition: null,
  amount: 1,
  expected: 1,
  isBounded: true,
  step: { provider: "", model: "" },
};

export class KeyRates {
  readonly #limits: Pick<Limits, "bucketsOf" | "nowOf">;
  readonly #shares: ShareExchange;
  /** A key that was edited is another object. */
  readonly #rules = new WeakMap<ProviderKey, LimitRule>();

  constructor(limits: Pick<Limits, "bucketsOf" | "nowOf">, shares: ShareExchange) {
    this.#limits = limits;
    this.#shares = shares;
  }

  /** Counts a call with the key; null if the key may be used. After a delay it is called again with the same key. */
  take(key: ProviderKey, gateway: Gateway, pending: PendingRate): KeyRefusal | Delay | null {
    const { claim: last } = pending;
    const waited = last?.keyId === key.id ? last.claim : null;
    // The key was edited, or is not healthy any more. What was counted stays counted.
    if (waited === null) last?.claim.cancel();
    pending.claim = null;
    if (waited?.state === "granted") return null;
    if (waited !== null) {
      return { waitMs: Math.max(waited.refusal?.waitMs ?? RETRY_MS, 1), error: waited.error };
    }
    const rule = this.#ruleOf(key, gateway);
    const bucket = this.#limits.bucketsOf(rule).find(null, this.#limits.nowOf(rule)) as SharedBucket;
    const parts = [{ rule, bucket, need: ONE_CALL, isForced: false }];
    if (this.#shares.tryTake(parts)) return null;
    const claim = this.#shares.claim(parts);
    pending.claim = { keyId: key.id, claim };
    return new Delay(claim.ready);
  }

  #ruleOf(key: ProviderKey, gateway: Gateway): LimitRule {
    const known = this.#rules.get(key);
    if (known !== undefined) return known;
    const limit = key.rateLimit ?? 0;
    const rule: LimitRule = {
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
    this.#rules.set(key, rule);
    return rule;
  }
}

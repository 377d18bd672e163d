/** The buckets of all rules, by their owners. */
import type { LimitOwner, LimitRule } from "./limit-rule.ts";
import type { RuleBuckets } from "./rule-buckets.ts";

/** `earlier`: the buckets of the rule with its earlier window, if it had one. */
export type CreateBuckets = (rule: LimitRule, earlier: RuleBuckets | undefined) => RuleBuckets;

export class OwnerBuckets {
  readonly #create: CreateBuckets;
  /** By owner, then by rule. */
  readonly #owners = new Map<string, Map<string, RuleBuckets>>();

  constructor(create: CreateBuckets) {
    this.#create = create;
  }

  of(rule: LimitRule): RuleBuckets {
    const key = ownerKey(rule.owner);
    let ofOwner = this.#owners.get(key);
    if (ofOwner === undefined) this.#owners.set(key, (ofOwner = new Map()));
    const id = `${rule.kind} ${rule.id}`;
    const known = ofOwner.get(id);
    if (known?.window.key === rule.window.key) return known;
    const buckets = this.#create(rule, known);
    ofOwner.set(id, buckets);
    return buckets;
  }

  /** Amounts that are settled from now on count for no owner. */
  forget(owner: LimitOwner): void {
    for (const buckets of this.#owners.get(ownerKey(owner))?.values() ?? []) buckets.forget();
    this.#owners.delete(ownerKey(owner));
  }
}

export function ownerKey({ accountId, key }: LimitOwner): string {
  return `${accountId}\n${key}`;
}

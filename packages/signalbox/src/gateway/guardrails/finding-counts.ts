/** What rules found in many calls: by action, by rule, and some of the calls. */
import type { Finding } from "./findings.ts";

type Action = Finding["action"];

/** One call in which something was found. */
export interface FoundCall {
  readonly id: string;
  readonly gatewayId: string;
  readonly createdAt: number;
  /** US dollars; null if it is not known. */
  readonly cost: number | null;
  readonly findings: readonly Finding[];
}

/** What one rule found. */
export interface RuleCount extends Pick<Finding, "rule" | "owner" | "place" | "action" | "kind"> {
  /** In how many calls. */
  calls: number;
  /** How many texts. */
  count: number;
  /** Of its calls, as far as it is known. */
  cost: number;
}

export class FindingCounts {
  /** Calls by the strictest action. */
  readonly actions: Record<Action, number> = { block: 0, mask: 0, flag: 0 };
  readonly samples: (FoundCall & { readonly action: Action })[] = [];
  readonly #maxSamples: number;
  readonly #byRule = new Map<string, RuleCount>();

  constructor(maxSamples: number) {
    this.#maxSamples = maxSamples;
  }

  /** The rules that found something in most calls first. */
  get rules(): readonly RuleCount[] {
    return [...this.#byRule.values()].sort((a, b) => b.calls - a.calls);
  }

  /** `action`: the strictest one of the findings. */
  add(action: Action, call: FoundCall): void {
    this.actions[action] += 1;
    for (const finding of call.findings) this.#count(finding, call.cost ?? 0);
    if (this.samples.length < this.#maxSamples) this.samples.push({ ...call, action });
  }

  #count({ rule, owner, place, action, kind, count }: Finding, cost: number): void {
    const key = JSON.stringify([rule, owner, place, action, kind]);
    const known = this.#byRule.get(key);
    if (known === undefined)
      this.#byRule.set(key, { rule, owner, place, action, kind, calls: 1, count, cost });
    else {
      known.calls += 1;
      known.count += count;
      known.cost += cost;
    }
  }
}

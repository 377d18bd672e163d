/** The findings of two requests, of which the second continues the first. */
import type { GuardrailFindings } from "@signalbox/client";

const MAX_SAMPLES = 100;

export function addFindings(one: GuardrailFindings, next: GuardrailFindings): GuardrailFindings {
  const rules = new Map(one.rules.map((rule) => [keyOf(rule), rule]));
  for (const rule of next.rules) {
    const known = rules.get(keyOf(rule));
    rules.set(
      keyOf(rule),
      known === undefined
        ? rule
        : {
            ...rule,
            calls: known.calls + rule.calls,
            count: known.count + rule.count,
            cost: known.cost + rule.cost,
          },
    );
  }
  return {
    block: one.block + next.block,
    mask: one.mask + next.mask,
    flag: one.flag + next.flag,
    rules: [...rules.values()].toSorted((a, b) => b.calls - a.calls),
    samples: [...one.samples, ...next.samples].slice(0, MAX_SAMPLES),
    cursor: next.cursor,
  };
}

export function keyOf({ rule, owner, place, action, kind }: GuardrailFindings["rules"][number]): string {
  return JSON.stringify([rule, owner, place, action, kind]);
}

import type { SpendRule } from "@signalbox/client";
import { expect, it } from "vitest";
import { fromRuleDraft, toRuleDraft, withEditedRule } from "./rule-draft.ts";

const RULES: readonly SpendRule[] = [
  { id: "all", enabled: true, limitType: "cost", limit: 100, window: "day", timezone: "Europe/Berlin" },
  { id: "prepaid", enabled: false, limitType: "cost", limit: 0.5, window: null },
  { id: "rate", enabled: true, limitType: "requests", limit: 60, window: 60, technique: "sliding" },
  { id: "calls", enabled: true, limitType: "parallel", limit: 4 },
  {
    id: "team",
    enabled: true,
    limitType: "tokens",
    limit: 1000,
    window: "month",
    model: { mode: "filter", values: ["gpt-5*", "claude-*"] },
    provider: { mode: "filter", values: ["openai"] },
    metadata: { team: { mode: "partition" }, plan: { mode: "filter", values: ["free", "trial"] } },
  },
];

it.each(RULES)("a form keeps the rule $id", (rule) => {
  expect(fromRuleDraft(toRuleDraft(rule))).toEqual(rule);
});

it("an edit keeps credit that was added meanwhile, and other rules", () => {
  const [all, prepaid] = RULES as [SpendRule, SpendRule];
  const edited = { ...prepaid, enabled: true };
  const rules = withEditedRule([all, { ...prepaid, limit: 7.5 }], prepaid, edited);
  expect(rules).toEqual([all, { ...edited, limit: 7.5 }]);
  expect(() => withEditedRule([{ ...prepaid, limit: 7.5 }], prepaid, { ...prepaid, limit: 1 })).toThrow(
    /7.5/,
  );
  expect(() => withEditedRule([all], prepaid, edited)).toThrow(/removed/);
});

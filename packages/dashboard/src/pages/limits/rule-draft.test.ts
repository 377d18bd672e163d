import type { SpendRule } from "@signalbox/client";
import { expect, it } from "vitest";
import { fromRuleDraft, toRuleDraft } from "./rule-draft.ts";

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

import type { GuardrailRule } from "@signalbox/client";
import { expect, it } from "vitest";
import { BLANK_RULE, fromRuleDraft, toRuleDraft, withSavedRule, withType } from "./rule-draft.ts";

const common = {
  on: ["prompt", "response"],
  on_failure: "block",
  on_media: "allow",
  logs: "full",
  enabled: true,
} as const;
const RULES: readonly GuardrailRule[] = [
  { ...common, id: "a", type: "regex", pattern: " x ", action: "mask", allow: ["y"] },
  {
    ...common,
    id: "b",
    type: "words",
    words: ["one", "two words"],
    action: "block",
    allow: [],
    on: ["prompt"],
  },
  {
    ...common,
    id: "c",
    type: "pii",
    kinds: ["email"],
    action: "flag",
    allow: [],
    logs: "masked",
    enabled: false,
  },
  { ...common, id: "d", type: "secrets", kinds: ["key"], action: "block", allow: [], on_failure: "allow" },
  {
    ...common,
    id: "e",
    type: "model",
    model: "a/b",
    format: "guard",
    instructions: "No",
    categories: ["S1"],
    action: "block",
    timeout_ms: 500,
    stream: "hold",
  },
  {
    ...common,
    id: "f",
    type: "model",
    model: "a/b",
    format: "injection",
    threshold: 0.9,
    action: "flag",
    timeout_ms: 10_000,
    stream: "window",
  },
  {
    ...common,
    id: "g",
    type: "webhook",
    url: "https://a.example/",
    action: "block",
    timeout_ms: 10_000,
    stream: "window",
  },
];

it.each(RULES)("rule $id of the type $type is the same after it was opened and saved", (rule) => {
  expect(fromRuleDraft(toRuleDraft(rule))).toEqual(rule);
});

it("a rule of another type has what the type needs", () => {
  expect(withType(BLANK_RULE, "model")).toMatchObject({ type: "model", action: "block" });
  expect(withType(BLANK_RULE, "secrets").kinds).toContain("private_key");
});

it("an edit keeps what others have changed, and a removed rule does not come back", () => {
  const [first, second] = RULES;
  if (first === undefined || second === undefined) throw new Error("no rules");
  const now = { ...first, enabled: false };
  const saved = withSavedRule([now, second], first, { ...first, action: "block" });
  expect(saved).toEqual([{ ...now, action: "block" }, second]);
  expect(() => withSavedRule([second], first, first)).toThrow(/removed/);
});

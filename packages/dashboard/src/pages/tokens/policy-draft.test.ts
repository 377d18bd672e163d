import type { TokenPolicy } from "@signalbox/client";
import { expect, it } from "vitest";
import { changedPolicy, NO_POLICY, toPolicyDraft } from "./policy-draft.ts";

const POLICY: TokenPolicy = {
  budgets: [
    { limit: 50, window: "month", timezone: "Europe/Berlin" },
    { limit: 0.5, window: 3600, reset: "sliding" },
    { limit: 25, window: null },
  ],
  soft_budget: { limit: 40, window: "month" },
  rate_limits: [
    { type: "requests", limit: 60, interval: 60 },
    { type: "parallel", limit: 4 },
  ],
  models: ["openai/gpt-5*", "!*pro*"],
  providers: ["openai"],
  routes: ["chat"],
  metadata: { team: "search", level: 5, code: "5", trial: true, note: null },
  owner: "ada",
  tags: { team: "a=b" },
  disabled: false,
};

it("a form keeps all limits of a token", () => {
  const { disabled, ...members } = POLICY;
  expect(disabled).toBe(false);
  expect(changedPolicy(NO_POLICY, toPolicyDraft(POLICY))).toEqual(members);
});

it("a save names the changed members only, and removes those that were emptied", () => {
  const before = toPolicyDraft(POLICY);
  expect(changedPolicy(before, before)).toEqual({});
  expect(changedPolicy(before, { ...before, owner: "", models: " \n" })).toEqual({ owner: null, models: [] });
  expect(changedPolicy(before, NO_POLICY)).toEqual({
    budgets: [],
    soft_budget: null,
    rate_limits: [],
    models: [],
    providers: [],
    routes: [],
    metadata: {},
    owner: null,
    tags: {},
  });
});

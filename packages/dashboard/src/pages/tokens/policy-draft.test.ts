import type { NewTokenPolicy, TokenBudget, TokenPolicy } from "@signalbox/client";
import { describe, expect, it } from "vitest";
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

describe("a token that changed while its form was open", () => {
  const budget = (limit: number, window: "day" | "month" | null) => ({ limit, window });
  const draftOf = (...budgets: TokenBudget[]) => toPolicyDraft({ ...POLICY, budgets });
  const limits = (policy: NewTokenPolicy) =>
    policy.budgets?.map(({ limit, window }) => `${limit} ${window ?? "in total"}`);

  it("keeps credit that was added, and budgets that others added", () => {
    const before = draftOf(budget(5, null), budget(1, "day"));
    const draft = draftOf(budget(5, null), budget(2, "day"));
    const now = draftOf(budget(25, null), budget(1, "day"), budget(9, "month"));
    expect(limits(changedPolicy(before, draft, now))).toEqual(["25 in total", "2 day", "9 month"]);
    expect(limits(changedPolicy(before, draftOf(budget(5, null)), now))).toEqual(["25 in total", "9 month"]);
  });

  it("refuses an edit of what others have changed", () => {
    const before = draftOf(budget(5, null));
    expect(() => changedPolicy(before, draftOf(budget(6, null)), draftOf(budget(25, null)))).toThrow(
      /limit is now "25"/,
    );
    expect(() => changedPolicy(before, draftOf(budget(6, null)), draftOf())).toThrow(/removed/);
    const renamed = (owner: string) => ({ ...before, owner });
    expect(() => changedPolicy(before, renamed("eve"), renamed("bob"))).toThrow(/owner/);
    expect(changedPolicy(before, renamed("eve"), { ...before, models: "x" })).toEqual({ owner: "eve" });
  });
});

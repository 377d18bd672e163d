/** What a call holds under its limits from its arrival to its end, in a real ledger. */
import { beforeEach, expect, it } from "vitest";
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { Step } from "../step/step.ts";
import { CallAccount } from "./call-account.ts";
import { CallRules, toRuleSet } from "./call-rules.ts";
import type { Charge, Need } from "./grant.ts";
import type { Ledger } from "./ledger.ts";
import type { LimitKind, LimitRule } from "./limit-rule.ts";
import { LocalLedger } from "./local-ledger.ts";
import type { SpendStore } from "./spend-store.ts";
import { createWindow } from "./window.ts";

const USED = { tokensIn: 3, tokensOut: 4 };
const FIGURES = { state: "reported", usage: USED, named: null, isCustomCost: false } as never;

let ledger: LocalLedger;
/** Reservations and settlements of money, as the journal gets them. */
let journal: string[];
/** Called when the journal is written. */
let waiting: (() => void)[];

beforeEach(() => {
  journal = [];
  waiting = [];
  let calls = 0;
  const store = {
    storedNames: () => [],
    restore: () => undefined,
    reserved: (_: unknown, isWrittenLater: boolean) => {
      journal.push(`reserved ${++calls}${isWrittenLater ? "" : " and written"}`);
      return calls;
    },
    whenWritten: (task: () => void) => waiting.push(task),
    settled: (call: number, amounts: readonly { readonly amount: number }[]) => {
      journal.push(`settled ${call}: ${amounts.reduce((sum, { amount }) => sum + amount, 0)}`);
    },
  };
  ledger = new LocalLedger({
    store: store as unknown as SpendStore,
    clock: { now: () => 0 },
    steadyClock: { now: () => 0 },
    onSoftBudget: () => undefined,
  });
});

function rule(kind: LimitKind, limit: number): LimitRule {
  const owner = { accountId: "default", key: "gateway g 1" };
  const window = createWindow(null);
  return { owner, id: kind, name: kind, kind, limit, window, isSoft: false, conditions: null };
}

const RULES = [rule("requests", 100), rule("parallel", 5), rule("tokens", 1000), rule("cost", 1_000_000)];

/** Each step may cost a cent. */
function open(through: Ledger = ledger): CallAccount {
  const rules = RULES.map((one) => ({ rule: one, buckets: through.bucketsOf(one) }));
  const set = toRuleSet({}, rules);
  const prices = {
    costOf: () => 0.01,
    contextWindowOf: () => null,
    ofAccount: () => undefined,
    needsOtherName: () => false,
    overrideOf: () => undefined,
  };
  const pricing = { prices, own: undefined, custom: undefined, unknownPrice: "block" };
  return new CallAccount({ rules: new CallRules(through, set, undefined), pricing } as never);
}

function step(model: string): Step {
  const bytes = Buffer.from(JSON.stringify({ model, messages: [], max_tokens: 10 }));
  return {
    provider: { slug: "openai", modelInPath: () => null },
    model,
    path: "chat/completions",
    requestType: "chat",
    maxOutputTokens: 10,
    choices: 1,
    tier: "",
    policy: { requestTimeoutMs: null, firstTokenTimeoutMs: null, stallTimeoutMs: null },
    door: null,
    upstream: { method: "POST", body: { kind: "whole", bytes }, headers: [], target: "/" },
  } as unknown as Step;
}

const bucketOf = (kind: LimitKind) => ledger.bucketsOf(rule(kind, 0)).find(null);
/** Places and millionths of a dollar that are held; requests that were counted. */
const held = () => ({
  places: bucketOf("parallel").reserved,
  money: bucketOf("cost").reserved,
  requests: bucketOf("requests").used(0),
});
const report = (of: Step, usage: object | null): AttemptReport =>
  ({ step: of, usage, outcome: "failed", failure: null }) as AttemptReport;

it("a call holds its place and the cost of its step, and is charged with what it used", () => {
  const [account, a] = [open(), step("a")];
  expect(account.arrive([a])).toBeNull();
  expect(account.admit(a, 0)).toBeNull();
  expect(held()).toEqual({ places: 1, money: 10_000, requests: 1 });
  account.settle(a, FIGURES, null);
  expect(held()).toEqual({ places: 0, money: 0, requests: 1 });
  expect(bucketOf("tokens").used(0)).toBe(7);
  expect(bucketOf("cost").used(0)).toBe(10_000);
  expect(journal).toEqual(["reserved 1", "settled 1: 10000"]);
  // A call is settled once.
  account.settle(a, FIGURES, null);
  expect(bucketOf("tokens").used(0)).toBe(7);
});

it("the first attempt with a reservation waits until it is written; a retry, and one beside a running attempt, do not wait", () => {
  const [account, a, b] = [open(), step("a"), step("b")];
  void account.arrive([a, b]);
  void account.admit(a, 0);
  const sent: string[] = [];
  expect(account.mustWait(() => sent.push("a"))).toBe(true);
  expect(sent).toEqual([]);
  for (const task of waiting) task();
  expect(sent).toEqual(["a"]);
  account.attemptSent();
  void account.admit(a, 0);
  expect(account.mustWait(() => undefined)).toBe(false);
  account.beside();
  void account.admit(b, 1, true);
  expect(journal).toEqual(["reserved 1", "reserved 2 and written"]);
});

it("a retry uses the reservation of the attempt before it, and another step takes its place", () => {
  const [account, a, b] = [open(), step("a"), step("b")];
  void account.arrive([a, b]);
  for (const [one, index] of [
    [a, 0],
    [a, 0],
    [b, 1],
  ] as const) {
    expect(account.admit(one, index)).toBeNull();
    account.attemptSent();
    account.attemptFailed(report(one, null));
    expect(held()).toMatchObject({ places: 1, money: 10_000 });
  }
  expect(journal).toEqual(["reserved 1", "settled 1: 0", "reserved 2"]);
  expect(held().requests).toBe(3);
  account.settle(b, null, null);
  expect(held()).toMatchObject({ places: 0, money: 0 });
  expect(bucketOf("cost").used(0)).toBe(0);
});

it("an attempt that is charged keeps its reservation until the call ends, and the next one reserves for itself", () => {
  const [account, a] = [open(), step("a")];
  void account.arrive([a]);
  void account.admit(a, 0);
  account.attemptSent();
  const failed = report(a, USED);
  account.attemptFailed(failed);
  expect(account.admit(a, 0)).toBeNull();
  expect(held().money).toBe(20_000);
  account.settle(a, FIGURES, [failed]);
  expect(held()).toEqual({ places: 0, money: 0, requests: 2 });
  expect(bucketOf("cost").used(0)).toBe(20_000);
  expect(journal).toEqual(["reserved 1", "reserved 2", "settled 2: 20000", "settled 1: 0"]);
});

it("an attempt beside another one holds its own reservation, and nothing of it is left if it is not sent", () => {
  const [account, a, b] = [open(), step("a"), step("b")];
  void account.arrive([a, b]);
  void account.admit(a, 0);
  account.attemptSent();
  const undo = account.beside();
  expect(account.admit(b, 1, true)).toBeNull();
  expect(held().money).toBe(20_000);
  undo();
  expect(held().money).toBe(10_000);
  expect(account.admit(a, 0)).toBeNull();
  expect(held().money).toBe(10_000);
  account.settle(a, null, null);
  expect(held()).toMatchObject({ places: 0, money: 0 });
});

it("what a call is granted after its end is given back", async () => {
  const later = {
    take: (needs: readonly Need[]) => Promise.resolve().then(() => ledger.take(needs)),
    charge: (charges: readonly Charge[]) => ledger.charge(charges),
    bucketsOf: (one: LimitRule) => ledger.bucketsOf(one),
  } as unknown as Ledger;
  const [account, a] = [open(later), step("a")];
  expect(await account.arrive([a])).toBeNull();
  const admission = account.admit(a, 0);
  account.settle(a, null, null);
  expect(await admission).not.toBeNull();
  expect(held()).toEqual({ places: 0, money: 0, requests: 1 });
});

it("what is left of a budget does not count what the call itself has reserved without expecting to use it", () => {
  const [account, a] = [open(), step("a")];
  void account.arrive([a]);
  void account.admit(a, 0);
  expect(account.remaining(a)).toEqual({ amount: 0.99, resetAt: null });
  account.settle(a, FIGURES, null);
  expect(account.remaining(a)).toEqual({ amount: 0.99, resetAt: null });
});

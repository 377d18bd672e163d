/** What the preparation of an attempt takes, counts, picks and probes, in which order, and what it leaves alone. */
import { SignalboxError } from "@signalbox/protocol";
import { beforeEach, expect, it } from "vitest";
import { CallAccount } from "../limits/call-account.ts";
import { type Admission, Delay } from "../step/delay.ts";
import type { StepDemand } from "../limits/limit-rule.ts";
import type { Step } from "../step/step.ts";
import { Circuits, targetOf } from "../reliability/circuits.ts";
import type { CallStart } from "./call-start.ts";
import { CallSteps } from "./call-steps.ts";

const REFUSED = new SignalboxError("gateway_rate_limited");
const GATEWAY = { accountId: "default", id: "g" } as CallStart["gateway"];
const delay = () => new Delay(Promise.resolve());

let now: number;
let log: string[];
/** Answers to the next questions of this kind; then null. */
let answers: Record<"reserve" | "attempt", Admission[]>;
let keyAnswers: (SignalboxError | Delay)[];
let circuits: Circuits;
let hasConditions: boolean;

beforeEach(() => {
  now = 0;
  log = [];
  answers = { reserve: [], attempt: [] };
  keyAnswers = [];
  circuits = new Circuits({ now: () => now });
  hasConditions = false;
});

function step(model: string): Step {
  return {
    provider: { slug: "openai", modelInPath: () => null },
    model,
    path: "chat/completions",
    requestType: "chat",
    maxOutputTokens: 10,
    choices: 1,
    tier: "",
    policy: {},
    translation: null,
    upstream: {
      method: "POST",
      body: { kind: "whole", bytes: Buffer.from(JSON.stringify({ model, messages: [], max_tokens: 10 })) },
      headers: [],
      target: "/",
    },
    keys: {
      pick: () => {
        log.push(`pick ${model}`);
        return keyAnswers.shift() ?? { id: "k", upstream: {} };
      },
      report: () => undefined,
      hasOther: () => false,
    },
  } as unknown as Step;
}

/** The account of a call, with rules that answer as the test says. */
function createAccount(): CallAccount {
  const rules = {
    get hasConditions() {
      return hasConditions;
    },
    needsTokens: true,
    arrive: () => null,
    limitsCostOf: () => false,
    release: () => void log.push("release"),
    keep: () => {
      log.push("keep");
      return () => void log.push("take back");
    },
    stopWaiting: () => undefined,
    reserve: ([demand]: StepDemand[]) => {
      log.push(`reserve ${demand?.model}`);
      return answers.reserve.shift() ?? null;
    },
    takeAttempt: (_provider: string, model: string) => {
      log.push(`count ${model}`);
      return answers.attempt.shift() ?? null;
    },
  };
  const prices = {
    costOf: () => 0.01,
    contextWindowOf: () => null,
    ofAccount: () => undefined,
    needsOtherName: () => false,
    overrideOf: () => undefined,
  };
  const pricing = { prices, own: undefined, custom: undefined, unknownPrice: "block" };
  return new CallAccount({ rules, pricing } as never);
}

function createSteps(...models: string[]) {
  const steps = models.map(step);
  const account = createAccount();
  return { steps, call: new CallSteps({ steps, account, gateway: GATEWAY }, circuits) };
}

const prepared = (call: CallSteps) => {
  const attempt = call.prepare();
  if (attempt instanceof Delay) return "delayed";
  return attempt instanceof SignalboxError ? "refused" : attempt.step.model;
};

/** Opens the circuit of a step, so that the next call that is let through is its probe. */
function halfOpen(one: Step): void {
  const target = targetOf(GATEWAY, one, { id: "k" } as never);
  for (let i = 0; i < 5; i += 1) circuits.failed(target);
  now += 30_000;
}
const isProbed = (one: Step) => !circuits.admits(targetOf(GATEWAY, one, { id: "k" } as never));

it("an attempt that its limits refuse uses up neither the rate of a key nor the probe of a circuit", () => {
  const { steps, call } = createSteps("a", "b");
  expect(prepared(call)).toBe("a");
  call.next();
  halfOpen(steps[1] as Step);
  answers.attempt.push(REFUSED);
  log.length = 0;
  expect(prepared(call)).toBe("refused");
  expect(log).toEqual(["release", "reserve b", "count b"]);
  expect(isProbed(steps[1] as Step)).toBe(false);
});

it("an attempt that was delayed goes on where it was: nothing is reserved, counted, picked or probed twice", () => {
  const { steps, call } = createSteps("a", "b");
  expect(prepared(call)).toBe("a");
  call.next();
  halfOpen(steps[1] as Step);
  log.length = 0;
  answers.reserve.push(delay());
  expect(prepared(call)).toBe("delayed");
  answers.attempt.push(delay());
  expect(prepared(call)).toBe("delayed");
  keyAnswers.push(delay());
  expect(prepared(call)).toBe("delayed");
  expect(prepared(call)).toBe("b");
  expect(log).toEqual([
    "release",
    "reserve b",
    "release",
    "reserve b",
    "count b",
    "count b",
    "pick b",
    "pick b",
  ]);
  expect(isProbed(steps[1] as Step)).toBe(true);
});

it("a step that follows one without a key reserves for itself, also if the attempt before was delayed", () => {
  const { call } = createSteps("a", "b", "c");
  expect(prepared(call)).toBe("a");
  call.next();
  answers.attempt.push(delay());
  expect(prepared(call)).toBe("delayed");
  keyAnswers.push(new SignalboxError("gateway_rate_limited"));
  expect(prepared(call)).toBe("refused");
  call.next();
  log.length = 0;
  expect(prepared(call)).toBe("c");
  // The attempt that was counted for `b` was not sent.
  expect(log).toEqual(["release", "reserve c", "pick c"]);
});

it("an attempt that was counted and not sent counts for another step only if the same rules apply to it", () => {
  hasConditions = true;
  const { call } = createSteps("a", "b", "c");
  prepared(call);
  call.next();
  keyAnswers.push(new SignalboxError("gateway_rate_limited"));
  expect(prepared(call)).toBe("refused");
  call.next();
  log.length = 0;
  expect(prepared(call)).toBe("c");
  expect(log).toEqual(["release", "reserve c", "count c", "pick c"]);
});

it("a step whose circuit is open is passed over, and sent if it is the last one", () => {
  const { steps, call } = createSteps("a", "b");
  const open = (one: Step | undefined) => {
    const target = targetOf(GATEWAY, one as Step, { id: "k" } as never);
    for (let i = 0; i < 5; i += 1) circuits.failed(target);
  };
  open(steps[0]);
  open(steps[1]);
  expect(prepared(call)).toBe("b");
});

it("a route that decides later, and has no other step then, sends the one that was passed over, with the key that was picked", () => {
  const [only] = [step("a")];
  const target = targetOf(GATEWAY, only, { id: "k" } as never);
  for (let i = 0; i < 5; i += 1) circuits.failed(target);
  const found = [delay(), null];
  const moreSteps = { mayHaveNext: true, next: () => found.shift() ?? null, refusal: null };
  const call = new CallSteps({ steps: [only], moreSteps, account: null, gateway: GATEWAY }, circuits);
  expect(prepared(call)).toBe("delayed");
  expect(prepared(call)).toBe("a");
  expect(log).toEqual(["pick a"]);
});

it("an attempt beside a running one keeps both reservations if it is sent, and leaves no trace if it is not", () => {
  const { call } = createSteps("a", "b");
  expect(prepared(call)).toBe("a");
  for (const refusal of [REFUSED, delay()]) {
    log.length = 0;
    answers.attempt.push(refusal);
    expect(call.prepareBeside()).toBeNull();
    expect(log).toEqual(["keep", "release", "reserve b", "count b", "take back"]);
    expect([call.index, call.attempts]).toEqual([0, 1]);
  }
  // The next attempt of the first step needs no reservation of its own.
  log.length = 0;
  expect(prepared(call)).toBe("a");
  expect(log).toEqual(["count a", "pick a"]);
  log.length = 0;
  expect(call.prepareBeside()?.step.model).toBe("b");
  expect(log).toEqual(["keep", "release", "reserve b", "count b", "pick b"]);
});

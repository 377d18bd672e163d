/** What the preparation of an attempt takes, counts, picks and probes, in which order, and what it leaves alone. */
import { SignalboxError } from "@signalbox/protocol";
import { beforeEach, expect, it } from "vitest";
import { CallAccount } from "../limits/call-account.ts";
import { Grant } from "../limits/grant.ts";
import { Refusal } from "../limits/limit-refusal.ts";
import type { StepDemand } from "../limits/limit-rule.ts";
import { Circuits, targetOf } from "../reliability/circuits.ts";
import type { Step } from "../step/step.ts";
import type { CallStart } from "./call-start.ts";
import { CallSteps } from "./call-steps.ts";

const REFUSED = new SignalboxError("gateway_rate_limited");
const GATEWAY = { accountId: "default", id: "g" } as CallStart["gateway"];
/** `later`: nodes share the limit, and the database is asked first. */
type Answer = "granted" | "refused" | "later";

let now: number;
let log: string[];
/** Answers to the next questions of this kind; then `granted`. */
let answers: Record<"reserve" | "attempt", Answer[]>;
let keyAnswers: ("none" | "later")[];
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
      pick: (_upstream: unknown, isNow: boolean) => {
        log.push(`pick ${model}`);
        const answer = keyAnswers.shift();
        const key = { id: "k", upstream: {} };
        if (answer === undefined) return key;
        return answer === "none" || isNow ? REFUSED : Promise.resolve(key);
      },
      report: () => undefined,
      hasOther: () => false,
    },
  } as unknown as Step;
}

/** The account of a call, with rules that answer as the test says. */
function createAccount(): CallAccount {
  const answer = (given: Answer | undefined, isNow: boolean, released: string | null) => {
    const grant = new Grant({ end: () => void (released === null ? 0 : log.push(released)) }, []);
    if (given === "refused" || (given === "later" && isNow)) return Refusal.unchecked(REFUSED);
    return given === "later" ? Promise.resolve(grant) : grant;
  };
  const rules = {
    get hasConditions() {
      return hasConditions;
    },
    needsTokens: true,
    arrive: () => answer("granted", false, null),
    limitsCostOf: () => false,
    settle: (grant: Grant | null) => grant?.settle([]),
    reserve: ([demand]: StepDemand[], isNow: boolean) => {
      log.push(`reserve ${demand?.model}`);
      return answer(answers.reserve.shift(), isNow, `release ${demand?.model}`);
    },
    takeAttempt: (_provider: string, model: string, isNow: boolean) => {
      log.push(`count ${model}`);
      return answer(answers.attempt.shift(), isNow, null);
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
  return { steps, account, call: new CallSteps({ steps, account, gateway: GATEWAY }, circuits) };
}

const prepared = async (call: CallSteps) => {
  const attempt = await call.prepare();
  return attempt instanceof SignalboxError ? "refused" : attempt.step.model;
};

/** Opens the circuit of a step, so that the next call that is let through is its probe. */
function halfOpen(one: Step): void {
  const target = targetOf(GATEWAY, one, { id: "k" } as never);
  for (let i = 0; i < 5; i += 1) circuits.failed(target);
  now += 30_000;
}
const isProbed = (one: Step) => !circuits.admits(targetOf(GATEWAY, one, { id: "k" } as never));

it("an attempt that its limits refuse uses up neither the rate of a key nor the probe of a circuit", async () => {
  const { steps, call } = createSteps("a", "b");
  expect(await prepared(call)).toBe("a");
  await call.next();
  halfOpen(steps[1] as Step);
  answers.attempt.push("refused");
  log.length = 0;
  expect(await prepared(call)).toBe("refused");
  expect(log).toEqual(["release a", "reserve b", "count b"]);
  expect(isProbed(steps[1] as Step)).toBe(false);
});

it("an attempt that was delayed goes on where it was: nothing is reserved, counted, picked or probed twice", async () => {
  const { steps, call } = createSteps("a", "b");
  expect(await prepared(call)).toBe("a");
  await call.next();
  halfOpen(steps[1] as Step);
  log.length = 0;
  answers.reserve.push("later");
  answers.attempt.push("later");
  keyAnswers.push("later");
  expect(await prepared(call)).toBe("b");
  expect(log).toEqual(["release a", "reserve b", "count b", "pick b"]);
  expect(isProbed(steps[1] as Step)).toBe(true);
});

it("a step that follows one without a key reserves for itself, also if the attempt before was delayed", async () => {
  const { call } = createSteps("a", "b", "c");
  expect(await prepared(call)).toBe("a");
  await call.next();
  answers.attempt.push("later");
  keyAnswers.push("none");
  expect(await prepared(call)).toBe("refused");
  await call.next();
  log.length = 0;
  expect(await prepared(call)).toBe("c");
  // The attempt that was counted for `b` was not sent.
  expect(log).toEqual(["release b", "reserve c", "pick c"]);
});

it("an attempt that was counted and not sent counts for another step only if the same rules apply to it", async () => {
  hasConditions = true;
  const { steps, account, call } = createSteps("a", "b", "c");
  await account.arrive(steps);
  await prepared(call);
  await call.next();
  keyAnswers.push("none");
  expect(await prepared(call)).toBe("refused");
  await call.next();
  log.length = 0;
  expect(await prepared(call)).toBe("c");
  expect(log).toEqual(["release b", "reserve c", "count c", "pick c"]);
});

it("a step whose circuit is open is passed over, and sent if it is the last one", async () => {
  const { steps, call } = createSteps("a", "b");
  const open = (one: Step | undefined) => {
    const target = targetOf(GATEWAY, one as Step, { id: "k" } as never);
    for (let i = 0; i < 5; i += 1) circuits.failed(target);
  };
  open(steps[0]);
  open(steps[1]);
  expect(await prepared(call)).toBe("b");
});

it("a route that decides later, and has no other step then, sends the one that was passed over, with the key that was picked", async () => {
  const [only] = [step("a")];
  const target = targetOf(GATEWAY, only, { id: "k" } as never);
  for (let i = 0; i < 5; i += 1) circuits.failed(target);
  const moreSteps = { mayHaveNext: true, next: () => Promise.resolve(null), refusal: null };
  const call = new CallSteps({ steps: [only], moreSteps, account: null, gateway: GATEWAY }, circuits);
  const later = call.prepare();
  expect(later).toBeInstanceOf(Promise);
  expect(await later).toMatchObject({ step: { model: "a" }, key: { id: "k" } });
  expect(log).toEqual(["pick a"]);
});

it("an attempt beside a running one keeps both reservations if it is sent, and leaves no trace if it is not", async () => {
  const { call } = createSteps("a", "b");
  expect(await prepared(call)).toBe("a");
  for (const answer of ["refused", "later"] as const) {
    log.length = 0;
    answers.attempt.push(answer);
    expect(call.prepareBeside()).toBeNull();
    expect(log).toEqual(["reserve b", "count b", "release b"]);
    expect([call.index, call.attempts]).toEqual([0, 1]);
  }
  // The next attempt of the first step needs no reservation of its own.
  log.length = 0;
  expect(await prepared(call)).toBe("a");
  expect(log).toEqual(["count a", "pick a"]);
  log.length = 0;
  expect(call.prepareBeside()?.step.model).toBe("b");
  expect(log).toEqual(["reserve b", "count b", "pick b"]);
});

it("a route that decides later is asked once: not by an attempt beside another one, and again by the attempt that follows", async () => {
  const [first, second] = [step("a"), step("b")];
  let asked = 0;
  const next = () => {
    asked += 1;
    return Promise.resolve(second);
  };
  const moreSteps = { mayHaveNext: true, next, refusal: null };
  const call = new CallSteps({ steps: [first], moreSteps, account: null, gateway: GATEWAY }, circuits);
  expect(await prepared(call)).toBe("a");
  expect(call.prepareBeside()).toBeNull();
  expect(await call.next()).toBe(true);
  expect(await prepared(call)).toBe("b");
  expect(asked).toBe(1);
});

it.each(["reserve", "attempt", "key"] as const)(
  "a call that ends while it waits (%s) takes nothing more, and what it took is given back",
  async (stage) => {
    const { steps, account, call } = createSteps("a", "b");
    expect(await prepared(call)).toBe("a");
    await call.next();
    halfOpen(steps[1] as Step);
    if (stage === "key") keyAnswers.push("later");
    else answers[stage].push("later");
    log.length = 0;
    const later = call.prepare();
    call.end();
    account.settle(steps[0] as Step, null, null);
    expect(await later).toBeInstanceOf(SignalboxError);
    expect(log.filter((entry) => entry === "release b")).toHaveLength(1);
    expect(log.filter((entry) => entry === "pick b")).toHaveLength(stage === "key" ? 1 : 0);
    expect(log.filter((entry) => entry === "count b")).toHaveLength(stage === "reserve" ? 0 : 1);
    expect(isProbed(steps[1] as Step)).toBe(false);
  },
);

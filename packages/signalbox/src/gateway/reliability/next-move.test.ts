import { expect, it } from "vitest";
import type { AttemptPolicy } from "../step/attempt-policy.ts";
import type { AttemptFailure } from "./attempt-failure.ts";
import { type FailedAttempt, nextMove } from "./next-move.ts";
import { backoffBefore, readRetryAfter } from "./retry-wait.ts";

const policy: AttemptPolicy = {
  requestTimeoutMs: null,
  maxAttempts: 3,
  retryDelayMs: 100,
  backoff: "exponential",
  maxRetryWaitMs: 10_000,
  firstTokenTimeoutMs: null,
  stallTimeoutMs: null,
  holdsResponse: false,
  fallbackOn: null,
  hedgeAfterMs: null,
  weight: 1,
};

const failure = (change: Partial<AttemptFailure>): AttemptFailure => ({
  kind: "status",
  status: 500,
  reason: null,
  retryAfterMs: null,
  cause: undefined,
  ...change,
});

const failed = (change: Partial<FailedAttempt>): FailedAttempt => ({
  failure: failure({}),
  policy,
  attempt: 1,
  canResend: true,
  hasOtherKey: false,
  hasOtherStep: true,
  isCircuitOpen: false,
  random: 0.5,
  ...change,
});

it("a transient failure is tried again after a random part of the backoff", () => {
  expect(nextMove(failed({}))).toEqual({ kind: "retry", delayMs: 50 });
  expect(nextMove(failed({ attempt: 2 }))).toEqual({ kind: "retry", delayMs: 100 });
  expect(nextMove(failed({ random: 0 }))).toEqual({ kind: "retry", delayMs: 0 });
  expect(nextMove(failed({ attempt: 3 }))).toEqual({ kind: "next_step" });
});

it.each([400, 401, 403, 404, 409, 413, 422])("a %d is never tried again on the same target", (status) => {
  expect(nextMove(failed({ failure: failure({ status }) }))).toEqual({ kind: "next_step" });
  expect(nextMove(failed({ failure: failure({ status }), hasOtherStep: false }))).toEqual({ kind: "end" });
});

it("the provider's wait is honoured up to the caller's bound", () => {
  const limited = (retryAfterMs: number) => failure({ status: 429, retryAfterMs });
  expect(nextMove(failed({ failure: limited(10_000) }))).toEqual({ kind: "retry", delayMs: 10_000 });
  expect(nextMove(failed({ failure: limited(10_001) }))).toEqual({ kind: "next_step" });
  expect(nextMove(failed({ failure: limited(10_001), hasOtherStep: false }))).toEqual({ kind: "end" });
});

it.each(["timeout", "in_band"] as const)(
  "after %s the same target is tried only if no other step exists",
  (kind) => {
    const silent = failure({ kind, status: null });
    expect(nextMove(failed({ failure: silent }))).toEqual({ kind: "next_step" });
    expect(nextMove(failed({ failure: silent, hasOtherStep: false }))).toMatchObject({ kind: "retry" });
  },
);

it("an open circuit ends the attempts of a step, unless it is the only one", () => {
  expect(nextMove(failed({ isCircuitOpen: true }))).toEqual({ kind: "next_step" });
  expect(nextMove(failed({ isCircuitOpen: true, hasOtherStep: false }))).toMatchObject({ kind: "retry" });
});

it("another key is used at once, whatever the number of attempts", () => {
  const refused = failure({ status: 401 });
  expect(nextMove(failed({ failure: refused, hasOtherKey: true, attempt: 3 }))).toEqual({
    kind: "retry",
    delayMs: 0,
  });
});

it("a body that was streamed is never sent again", () => {
  expect(nextMove(failed({ canResend: false }))).toEqual({ kind: "end" });
});

it("a rejection of the content is final unless the step says otherwise", () => {
  const rejected = failure({ status: 400, reason: "content_filter" });
  expect(nextMove(failed({ failure: rejected }))).toEqual({ kind: "end" });
  const open = { ...policy, fallbackOn: ["content_filter" as const] };
  expect(nextMove(failed({ failure: rejected, policy: open }))).toEqual({ kind: "next_step" });
});

it.each([
  [["retry-after", "2"], 2000],
  [["Retry-After", "0.25"], 250],
  [["retry-after", "1", "Retry-After-Ms", "120"], 120],
  [["retry-after-ms", "120", "retry-after", "1"], 120],
  [["retry-after", "Thu, 01 Jan 1970 00:00:05 GMT"], 4000],
  [["retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"], 0],
  [["retry-after", "soon"], null],
  [["retry-after", "-1"], null],
  [["retry-after-ms", "soon", "retry-after", "3"], 3000],
  [[], null],
] as const)("reads the wait of %j", (headers, expected) => {
  expect(readRetryAfter(headers, 1000)).toBe(expected);
});

it("the backoff is constant, linear or exponential, and never more than its full length", () => {
  const of = (backoff: AttemptPolicy["backoff"], next: number) =>
    backoffBefore(next, { ...policy, backoff }, 1);
  expect([2, 3, 4].map((next) => of("constant", next))).toEqual([100, 100, 100]);
  expect([2, 3, 4].map((next) => of("linear", next))).toEqual([100, 200, 300]);
  expect([2, 3, 4].map((next) => of("exponential", next))).toEqual([100, 200, 400]);
});

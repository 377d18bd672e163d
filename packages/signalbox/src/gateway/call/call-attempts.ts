/**
 * The attempts of a call as its row keeps them, for a picture of where its time went. Null for a call with one attempt that began at once, as nearly
 * all are: duration and time to first byte say the same. Never a secret: the provider, the model, times and outcomes.
 */
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { Step } from "../step/step.ts";
import type { CallOutcome, CallStart } from "./call-start.ts";

interface StoredAttempt {
  readonly provider: string;
  readonly model: string;
  /** Index of the fallback step; of the last attempt it is that of the row. */
  readonly step: number;
  /** Milliseconds after the headers of the request. */
  readonly start: number;
  readonly duration: number;
  /** Null without a response. */
  readonly status: number | null;
  readonly outcome: "answered" | "failed" | "cancelled";
  /** The kind of the failure, such as `timeout`. */
  readonly failure: string | null;
}

/** An attempt that begins later than this shows what the call waited for: a limit, the cache, a full log. */
const LATE_MS = 20;
/** The policies allow fewer; a route may have many steps. */
const MAX_ATTEMPTS = 50;

export function attemptsOf(start: CallStart, outcome: CallOutcome): string | null {
  const { otherAttempts, attemptStartedAt } = outcome;
  if (attemptStartedAt === null && otherAttempts === null) return null;
  if (otherAttempts === null && (attemptStartedAt ?? 0) - start.startedAt < LATE_MS) return null;
  const others = (otherAttempts ?? []).map((report) => ofReport(report, start.startedAt));
  const last = attemptStartedAt === null ? [] : [ofAnswer(start.startedAt, attemptStartedAt, outcome)];
  return JSON.stringify([...others, ...last].slice(0, MAX_ATTEMPTS));
}

function ofReport(report: AttemptReport, callStartedAt: number): StoredAttempt {
  const { step, stepIndex, startedAt, durationMs, head, outcome, failure } = report;
  return {
    ...targetOf(step),
    step: step.place ?? stepIndex,
    start: rounded(startedAt - callStartedAt),
    duration: rounded(durationMs),
    status: head?.status ?? null,
    outcome,
    failure: failure?.kind ?? null,
  };
}

function ofAnswer(callStartedAt: number, startedAt: number, outcome: CallOutcome): StoredAttempt {
  const isAnswered = outcome.isAnswer && outcome.isComplete && outcome.status < 400;
  return {
    ...targetOf(outcome.step),
    step: outcome.place,
    start: rounded(startedAt - callStartedAt),
    duration: rounded(performance.now() - startedAt),
    status: outcome.head?.status ?? null,
    outcome: isAnswered ? "answered" : outcome.isAbandoned ? "cancelled" : "failed",
    failure: isAnswered ? null : outcome.head === null ? "unreachable" : null,
  };
}

function targetOf({ provider, model }: Step): Pick<StoredAttempt, "provider" | "model"> {
  return { provider: provider.slug, model };
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

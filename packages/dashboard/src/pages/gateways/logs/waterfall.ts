/** Where the time of a call went, from its row: bars on one time line, in milliseconds after the headers of the request. */
import type { Call } from "./call.ts";

export interface WaterfallBar {
  readonly title: string;
  /** What came of it, such as `429` or `timeout`. */
  readonly note: string;
  readonly tone: "muted" | "good" | "bad" | "warn" | "accent";
  readonly from: number;
  readonly to: number;
}

/** The form in which the service stores attempts (`call-attempts.ts`). */
interface StoredAttempt {
  readonly provider: string;
  readonly model: string;
  readonly step: number;
  readonly start: number;
  readonly duration: number;
  readonly status: number | null;
  readonly outcome: "answered" | "failed" | "cancelled";
  readonly failure: string | null;
}

type Timed = Pick<
  Call,
  "provider" | "model" | "duration" | "time_to_first_byte" | "status_code" | "success" | "cached" | "attempts"
>;

export function waterfallOf(call: Timed): WaterfallBar[] {
  if (call.cached) return [{ title: "Cache", note: "hit", tone: "accent", from: 0, to: call.duration }];
  const attempts = parseAttempts(call.attempts);
  const last = attempts.at(-1);
  if (last === undefined) return answerBars(call, 0, `${call.provider}/${call.model}`);
  const first = Math.min(...attempts.map(({ start }) => start));
  return [
    { title: "Gateway: token, limits, cache", note: "", tone: "muted", from: 0, to: first },
    ...attempts.slice(0, -1).map(attemptBar),
    ...answerBars(call, last.start, titleOf(last)),
  ];
}

/** Waiting for the first byte of the answer, and its bytes. */
function answerBars(call: Timed, from: number, title: string): WaterfallBar[] {
  const { duration, time_to_first_byte: firstByte, success, status_code: status } = call;
  const note = String(status);
  if (firstByte === null || firstByte >= duration)
    return [{ title, note, tone: success ? "good" : "bad", from, to: duration }];
  return [
    { title, note, tone: success ? "good" : "bad", from, to: firstByte },
    { title: "Answer, first to last byte", note: "", tone: "accent", from: firstByte, to: duration },
  ];
}

function attemptBar(attempt: StoredAttempt): WaterfallBar {
  const { start, duration, status, outcome, failure } = attempt;
  return {
    title: titleOf(attempt),
    note:
      outcome === "cancelled"
        ? "cancelled"
        : ((failure === "status" ? null : failure) ?? String(status ?? "no answer")),
    tone: outcome === "cancelled" ? "warn" : "bad",
    from: start,
    to: start + duration,
  };
}

function titleOf({ provider, model, step }: StoredAttempt): string {
  const name = model === "" ? provider : `${provider}/${model}`;
  return step === 0 ? name : `Fallback ${step}: ${name}`;
}

function parseAttempts(text: string | undefined): StoredAttempt[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? (value as StoredAttempt[]) : [];
  } catch {
    return [];
  }
}

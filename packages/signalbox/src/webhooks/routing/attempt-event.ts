/** One attempt to deliver an event to the target of its route, and what follows from its end. */
import type { DeliveryOutcome } from "../../agents/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Sealing } from "../../core/sealing.ts";
import { ulid } from "../../core/ulid.ts";
import type { RequestSender } from "../../outgoing/index.ts";
import { findVerdict, shortMessage } from "../late-verdict.ts";
import { attemptUrl } from "./attempt-url.ts";
import type { AttemptRecord, RoutedEvent, StoredDelivery } from "./event-record.ts";
import type { EventEnd } from "./event-table.ts";
import { causeOf } from "./issue-cause.ts";
import type { Route } from "./route.ts";

const GONE = 410;
/** After a failure that is not the event's: overload, or an agent that does not exist. */
const POSTPONED_MS = 1000;
const ABSENT_MS = 60_000;

export interface AttemptParts {
  readonly clock: Clock;
  readonly requests: RequestSender;
  readonly sealing: Sealing;
  readonly random: () => number;
  /** Aborts when the process stops. */
  readonly signal: AbortSignal;
  /** Finds the instance of the entity and delivers to it. Rejects with `webhook_missing_entity` if the delivery names none. */
  deliverToAgent(agent: string, event: RoutedEvent, delivery: StoredDelivery): Promise<DeliveryOutcome>;
}

export interface AttemptEnd {
  readonly end: EventEnd;
  readonly record: AttemptRecord;
  /** The receiver answered 410. */
  readonly isGone: boolean;
  /** Null if the end says nothing about the receiver. */
  readonly hasSucceeded: boolean | null;
}

/** Null if the process stops and has broken the attempt off: it is made again. */
export async function attemptEvent(
  parts: AttemptParts,
  route: Route,
  event: RoutedEvent,
  delivery: StoredDelivery,
): Promise<AttemptEnd | null> {
  const startedAt = parts.clock.now();
  const begun = performance.now();
  const { target } = route;
  if (target.kind === "listen") throw new Error("listeners take their events themselves");
  const result =
    target.kind === "url"
      ? await attemptUrl({ ...parts, now: startedAt }, target, event, delivery).then((attempt) => ({
          ...attempt,
          verdict: verdictOf(attempt.status),
        }))
      : await attemptAgent(parts.deliverToAgent(target.agent, event, delivery));
  if (parts.signal.aborted && result.verdict !== "delivered") return null;
  const record: AttemptRecord = {
    id: ulid(parts.clock.now()),
    accountId: event.accountId,
    event: event.id,
    number: event.attempts,
    cause: event.cause,
    startedAt,
    durationMs: performance.now() - begun,
    outcome: result.verdict === "delivered" ? "delivered" : "failed",
    status: result.status,
    error: result.error,
    request: result.request,
    responseHeaders: result.responseHeaders,
    response: result.response,
  };
  return { record, ...follow(parts, route, event, result) };
}

type Verdict = "delivered" | "failed" | "gone" | "refused" | "postponed" | "absent";

export interface AttemptResult {
  readonly verdict: Verdict;
  readonly status: number | null;
  readonly error: string | null;
  readonly retryAfterMs: number | null;
  readonly request: AttemptRecord["request"];
  readonly responseHeaders: AttemptRecord["responseHeaders"];
  readonly response: Uint8Array | null;
}

function verdictOf(status: number | null): Verdict {
  if (status !== null && status >= 200 && status <= 299) return "delivered";
  return status === GONE ? "gone" : "failed";
}

async function attemptAgent(delivering: Promise<DeliveryOutcome>): Promise<AttemptResult> {
  const found = await findVerdict(delivering);
  const nothing = { status: null, retryAfterMs: null, request: null, responseHeaders: null, response: null };
  if (found.kind === "handled") return { ...nothing, verdict: "delivered", error: null };
  return { ...nothing, verdict: found.kind, error: shortMessage(found.error) };
}

/** What the end of an attempt means for the event. */
export function follow(
  { clock, random }: Pick<AttemptParts, "clock" | "random">,
  route: Route,
  event: RoutedEvent,
  {
    verdict,
    status,
    error,
    retryAfterMs,
  }: Pick<AttemptResult, "verdict" | "status" | "error" | "retryAfterMs">,
): Omit<AttemptEnd, "record"> {
  const now = clock.now();
  const base = { id: event.id, number: event.attempts, reason: error, counts: true };
  const { accountId, source, name } = route;
  const failed = (): EventEnd => ({
    ...base,
    state: "failed",
    dueAt: null,
    // Who listens has seen the failure.
    ...(route.target.kind === "listen"
      ? {}
      : { failure: { accountId, source, name, event: event.id, cause: causeOf(error) } }),
  });
  const wait = (delayMs: number, counts: boolean): EventEnd => ({
    ...base,
    state: "waiting",
    dueAt: now + delayMs,
    counts,
  });
  switch (verdict) {
    case "delivered":
      return {
        end: { ...base, state: "delivered", dueAt: null, settles: event.issue },
        isGone: false,
        hasSucceeded: true,
      };
    case "gone":
      // The route is paused before this is recorded: the event waits for a decision, and no attempt was used up.
      return { end: wait(0, false), isGone: true, hasSucceeded: false };
    case "postponed":
    case "absent":
      return {
        end: wait(verdict === "absent" ? ABSENT_MS : POSTPONED_MS, false),
        isGone: false,
        hasSucceeded: null,
      };
    case "refused":
      return { end: failed(), isGone: false, hasSucceeded: null };
    case "failed": {
      const isRetried = status === null || route.retry.isRetried(status);
      const delayMs = isRetried ? route.retry.delayAfter(event.tries, random()) : null;
      const end: EventEnd = delayMs === null ? failed() : wait(Math.max(delayMs, retryAfterMs ?? 0), true);
      return { end, isGone: false, hasSucceeded: false };
    }
  }
}

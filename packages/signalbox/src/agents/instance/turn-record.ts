/** What the timeline keeps of a turn: its times, what it was about, its payload in bounded length, and what it changed in the state. */
import { boundedJson } from "../../core/bounded-json.ts";
import { messageOf } from "../../core/stored-error.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { Turn } from "../../engines/turn-runtime/index.ts";
import { stateChanges } from "./state-changes.ts";
import type { NewRecord } from "./timeline.ts";

const MAX_PAYLOAD = 4096;

export interface TurnOutcome {
  readonly endedAt: number;
  readonly durationMs: number;
  /** Null for a turn that succeeded. */
  readonly error: unknown;
  readonly failureId: string | null;
  /** Reads the state after the turn as JSON. */
  readonly state: () => string | null;
}

/** `note` of the turn is the state before its first change, as JSON or null; undefined if it did not set the state. */
export function recordOf(
  turn: Turn,
  { endedAt, durationMs, error, failureId, state }: TurnOutcome,
): NewRecord {
  const { kind, label, cause, note } = turn;
  return {
    at: endedAt - durationMs,
    durationMs,
    kind,
    label,
    ...describe(kind, cause),
    error: error === null ? null : messageOf(error),
    failureId,
    state: note === undefined ? null : stateChanges(note as string | null, state()),
  };
}

function describe(kind: string, cause: object | null): Pick<NewRecord, "reference" | "payload"> {
  if (cause === null) return { reference: null, payload: null };
  if (kind === "delivery") {
    const { id, payload } = cause as WebhookEvent;
    return { reference: id, payload: boundedJson(payload, MAX_PAYLOAD) };
  }
  if (kind === "queue" || kind === "schedule") {
    const { id, payload } = cause as { readonly id: string; readonly payload: unknown };
    return { reference: id, payload: payload === undefined ? null : boundedJson(payload, MAX_PAYLOAD) };
  }
  if (kind === "message")
    return {
      reference: null,
      payload: boundedJson((cause as { readonly message: string }).message, MAX_PAYLOAD),
    };
  // The arguments of a call.
  return kind === "rpc" && Array.isArray(cause) && cause.length > 0
    ? { reference: null, payload: boundedJson(cause, MAX_PAYLOAD) }
    : { reference: null, payload: null };
}

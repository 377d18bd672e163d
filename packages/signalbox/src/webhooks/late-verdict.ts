/** What the end of an attempt to deliver means for a late delivery. */
import { type ErrorName, SignalboxError } from "@signalbox/protocol";
import type { DeliveryOutcome } from "../agents/index.ts";
import { messageOf } from "../core/stored-error.ts";

const MAX_ERROR_LENGTH = 500;

/** Errors that do not count as attempts. After `agent_destroyed` a new instance of the name handles the delivery. */
const POSTPONING: ReadonlySet<ErrorName> = new Set([
  "overloaded",
  "stopping",
  "storage_unavailable",
  "agent_destroyed",
]);

type Verdict =
  | { readonly kind: "handled" }
  | { readonly kind: "refused" | "absent" | "postponed" | "failed"; readonly error: unknown };

export async function findVerdict(attempt: Promise<DeliveryOutcome>): Promise<Verdict> {
  try {
    const outcome = await attempt;
    if (outcome.kind !== "answered" || outcome.status < 300) return { kind: "handled" };
    const error = new Error(`the agent answered ${outcome.status}`);
    return { kind: outcome.status < 500 && outcome.status !== 429 ? "refused" : "failed", error };
  } catch (error) {
    if (!(error instanceof SignalboxError)) return { kind: "failed", error };
    if (POSTPONING.has(error.id)) return { kind: "postponed", error };
    if (error.id === "agent_not_found" || error.id === "webhook_unknown_source")
      return { kind: "absent", error };
    return { kind: error.status < 500 ? "refused" : "failed", error };
  }
}

export function shortMessage(error: unknown): string {
  return messageOf(error).slice(0, MAX_ERROR_LENGTH);
}

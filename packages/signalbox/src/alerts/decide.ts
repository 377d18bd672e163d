/**
 * What a check of a rule changes.
 *
 *   ok ──value ≥ threshold──► firing ──value below──► ok
 *
 * Entering `firing` sends a notice, unless one was sent within the quiet period: then it is sent when the period has passed and the rule still
 * fires. Leaving `firing` sends a notice if the firing was reported. After a start the windows are empty, so a firing rule stays as it is until
 * a whole window has been observed: a restart resolves nothing.
 */
import type { AlertSettings, AlertState } from "./alert-rule.ts";

export interface Check {
  readonly settings: AlertSettings;
  readonly state: AlertState;
  /** Null when there was too little to measure. */
  readonly value: number | null;
  readonly now: number;
  /** Since when the window has been observed. */
  readonly observedSince: number;
}

export interface Decision {
  readonly state: AlertState;
  readonly notice: "firing" | "resolved" | null;
}

export function decide({ settings, state, value, now, observedSince }: Check): Decision {
  const isOver = value !== null && value >= settings.threshold;
  if (isOver) {
    const begun: AlertState =
      state.status === "firing"
        ? { ...state, value }
        : { ...state, status: "firing", since: now, isReported: false, value };
    const isQuiet = state.notifiedAt !== null && now - state.notifiedAt < settings.quiet_period * 1000;
    if (begun.isReported || isQuiet) return { state: begun, notice: null };
    return { state: { ...begun, isReported: true, notifiedAt: now }, notice: "firing" };
  }
  if (state.status === "ok") return { state: { ...state, value, since: state.since ?? now }, notice: null };
  if (now - observedSince < settings.window * 1000) return { state, notice: null };
  const isTold = state.isReported && settings.notify_resolved;
  return {
    state: { ...state, status: "ok", since: now, isReported: false, value },
    notice: isTold ? "resolved" : null,
  };
}

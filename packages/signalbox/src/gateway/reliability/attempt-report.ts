import type { ResponseHead, Usage } from "../../engines/relay/index.ts";
import type { Step } from "../step/step.ts";
import type { AttemptFailure } from "./attempt-failure.ts";

/** One attempt that did not answer the client, for accounting. The attempt that answered is described by the call's outcome. */
export interface AttemptReport {
  readonly step: Step;
  readonly stepIndex: number;
  readonly keyId: string | null;
  /** `failed`: the loop went on; `cancelled`: another attempt answered first (hedging). */
  readonly outcome: "failed" | "cancelled";
  readonly failure: AttemptFailure | null;
  readonly head: ResponseHead | null;
  /** What the bytes that arrived say about tokens; null when no byte arrived. */
  readonly usage: Usage | null;
  readonly responseBytes: number;
  readonly durationMs: number;
  /** `performance.now()` when it was sent. */
  readonly startedAt: number;
}

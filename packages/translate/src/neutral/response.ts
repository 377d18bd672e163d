import type { Part, SearchCall } from "./part.ts";
import type { NeutralUsage } from "./usage.ts";

/**
 * Why the model stopped. `stop_sequence` names the text that matched where the upstream reports it; `pause` is a turn
 * that the provider cut and the client may continue (messages).
 */
export type StopReason =
  | "stop"
  | "stop_sequence"
  | "length"
  | "context_window"
  | "tool_calls"
  | "refusal"
  | "pause";

/** A whole response between two dialects. Null means: the upstream did not say. */
export interface NeutralResponse {
  readonly id: string | null;
  readonly model: string | null;
  readonly created: number | null;
  readonly parts: readonly Part[];
  /** Searches of the web that the provider made for the answer. */
  readonly searches: readonly SearchCall[];
  readonly stopReason: StopReason;
  readonly stopSequence: string | null;
  readonly usage: NeutralUsage | null;
}

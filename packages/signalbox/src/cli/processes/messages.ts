/** What the supervisor and its processes say to each other, over the channel that Node opens between them. */
import type { RunningServer } from "../../database/sqlite/data-folder.ts";
import type { ProcessState } from "../../http/index.ts";

/** Answers are text: the metrics, or the problems as a JSON list. */
export type Question = "metrics" | "readiness";

/** One process as the supervisor knows it. */
export interface ProcessReport {
  readonly process: number;
  readonly state: ProcessState;
  readonly restarts: number;
  /** Null if the process does not serve or did not answer in time, and for the one that asks. */
  readonly answer: string | null;
}

export type ToProcess =
  /** `isReplaced`: other processes go on to accept connections. */
  | { readonly kind: "stop"; readonly isReplaced: boolean }
  | { readonly kind: "question"; readonly id: number; readonly what: Question }
  | { readonly kind: "reports"; readonly id: number; readonly reports: readonly ProcessReport[] }
  /** Every connection that was handed to the process before has been received by it. */
  | { readonly kind: "goodbye" };

export type FromProcess =
  | { readonly kind: "address"; readonly server: RunningServer }
  /** `line`: what `--json` prints, of this process. `welcome`: what is printed otherwise. */
  | { readonly kind: "serving"; readonly line: object; readonly welcome: string }
  | { readonly kind: "ask"; readonly id: number; readonly what: Question }
  | { readonly kind: "answer"; readonly id: number; readonly text: string }
  | { readonly kind: "leaving" };

/** Set by the supervisor: a `ProcessPlace` as JSON. */
export const PLACE_VARIABLE = "SIGNALBOX_PROCESS";

/** The part of the caller of an arrival in what all calls have in common. */
import type { LongWork } from "../../core/long-work.ts";
import { holderOf } from "../keys/caller-token.ts";
import type { CallShare } from "../step/call-share.ts";
import type { Arrival } from "./call-start.ts";

/** Parsing and translating a body of this length takes some milliseconds; the longest ones take a part of a second. */
export const LONG_BODY = 256 * 1024;

export interface ShareParts {
  /** Bodies that take the event loop for long. */
  readonly longBodies: LongWork;
}

export function callerShare(
  { longBodies }: ShareParts,
  { context, memory, caller, gateway }: Arrival,
): CallShare {
  return {
    holdMemory: (bytes) => context.memory.hold(memory, bytes),
    beginWork(bytes, piece) {
      if (bytes < LONG_BODY) piece();
      else longBodies.begin(holderOf(caller, gateway), piece);
    },
  };
}

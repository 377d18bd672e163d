/**
 * Work on a text that may be megabytes long, in slices: between two of them other work has its turn. A short text is one slice.
 */
import type { CallShare } from "../step/call-share.ts";

/** Each step is one slice. */
export type Slices<Result> = Generator<void, Result>;

/** In UTF-16 code units: with ten rules some 30 ns each. */
export const SLICE = 32 * 1024;

export function inOnePiece<Result>(slices: Slices<Result>): Result {
  for (;;) {
    const step = slices.next();
    if (step.done === true) return step.value;
  }
}

/** Takes turns with the long bodies of other callers, if `bytes` are many; at once otherwise. */
export function inTurns<Result>(
  slices: Slices<Result>,
  bytes: number,
  share: Pick<CallShare, "beginWork">,
  onEnd: (result: Result) => void,
  onError: (error: unknown) => void,
): void {
  const step = () => {
    let next: IteratorResult<void, Result>;
    try {
      next = slices.next();
    } catch (error) {
      onError(error);
      return;
    }
    if (next.done === true) onEnd(next.value);
    else share.beginWork(bytes, step);
  };
  share.beginWork(bytes, step);
}

/** The placement of a process that is alone: every instance is here. */
import type { Placement } from "./placement.ts";

export const LOCAL_PLACEMENT: Placement = {
  find: () => null,
  learn: () => undefined,
  reach: (work) => work.here(),
};

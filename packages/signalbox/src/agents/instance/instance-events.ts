/** What an instance reports to the directory that loaded it. */
import type { Leaving } from "./leaving.ts";

export interface InstanceEvents<I> {
  /** Nothing runs or waits any more. */
  onIdle(instance: I): void;
  /** The instance takes no more events. */
  onLeave(instance: I, leaving: Leaving): void;
  /** The instance's code called `destroy`. */
  onDestroyRequest(instance: I): Promise<void>;
}

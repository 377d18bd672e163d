/** What belongs to an instance and is not in its database, when it moves to another node. */
import type { InstanceRef } from "./instance-ref.ts";

export interface HandOverHook {
  /** True if something has to go with the instance, whether or not it is in memory. */
  concerns(ref: InstanceRef): boolean;
  /**
   * The instance is about to be given to a node, or up (`null`). `wasQuiet` is false for an instance that was interrupted. The returned function is
   * called when this node has given it up. Never rejects.
   */
  leave(ref: InstanceRef, to: string | null, wasQuiet: boolean): Promise<() => void>;
}

/** The last instances that this node has taken from nodes that were gone, for operators. */
import type { TakeOver } from "./ownership.ts";

const MAX_KEPT = 20;

export class RecentTakeOvers {
  #list: readonly TakeOver[] = [];

  add(takeOver: TakeOver): void {
    this.#list = [...this.#list.slice(1 - MAX_KEPT), takeOver];
  }

  /** Oldest first. */
  get list(): readonly TakeOver[] {
    return this.#list;
  }
}

/**
 * The nodes that were declared dead, for operators. A node that leaves drains first; one that disappears while it is up has crashed, or is cut off
 * from the database.
 *
 * A lost node is forgotten after an hour, or when a node with its name is alive again: then it was restarted.
 */
import type { ClusterMember } from "../database/membership.ts";

export interface LostMember {
  readonly inc: string;
  readonly name: string;
  readonly version: string;
  /** By the clock of this process. */
  readonly lastSeenAt: number;
}

const KEPT_MS = 60 * 60_000;
const MAX_KEPT = 100;

export class LostMembers {
  #lost: readonly LostMember[] = [];

  /** `before` and `after` are two lists of the living nodes, one after the other. */
  update(before: readonly ClusterMember[], after: readonly ClusterMember[], now: number): void {
    const living = new Set(after.map(({ inc }) => inc));
    const gone = before.filter(({ inc, state }) => state === "up" && !living.has(inc));
    if (gone.length === 0) return;
    const lost = gone.map(({ inc, name, version, ageMs }) => ({
      inc,
      name,
      version,
      lastSeenAt: now - ageMs,
    }));
    this.#lost = [...this.#lost, ...lost].slice(-MAX_KEPT);
  }

  /** Of a node that was lost, also if another one has its name now. */
  nameOf(inc: string): string | null {
    return this.#lost.find((member) => member.inc === inc)?.name ?? null;
  }

  /** Oldest first. */
  list(living: readonly ClusterMember[], now: number): readonly LostMember[] {
    const names = new Set(living.map(({ name }) => name));
    return this.#lost.filter(({ name, lastSeenAt }) => !names.has(name) && now - lastSeenAt < KEPT_MS);
  }
}

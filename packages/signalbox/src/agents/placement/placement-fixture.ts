/** A network without links, and owners without a database, for tests of placement. */
import type { NetworkMember } from "../../contracts/node-network.ts";
import type { Link } from "../../engines/node-link/index.ts";
import { ClusterPlacement } from "./cluster-placement.ts";

export class FakeNetwork {
  self = "1";
  members: NetworkMember[] = [];
  readonly #listeners = new Set<() => void>();

  constructor(...incs: string[]) {
    this.members = incs.map((inc) => member(inc));
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Nodes without a link. */
  readonly unlinked = new Set<string>();

  linkTo(node: string): Link | null {
    return this.unlinked.has(node) ? null : ({} as Link);
  }

  setMembers(...members: NetworkMember[]): void {
    this.members = members;
    this.change();
  }

  change(): void {
    for (const listener of this.#listeners) listener();
  }
}

export class FakeOwnership {
  /** What PostgreSQL says. */
  readonly owners = new Map<string, string>();
  readonly held = new Set<string>();
  readonly known = new Map<string, string | null>();
  queries = 0;
  cutOffMs = 0;
  error: Error | null = null;

  isHeld(name: string): boolean {
    return this.held.has(name);
  }

  peek(name: string): { node: string | null } | undefined {
    const node = this.known.get(name);
    return node === undefined ? undefined : { node };
  }

  async find(names: readonly string[]): Promise<{ node: string | null }[]> {
    this.queries += 1;
    if (this.error !== null) throw this.error;
    return names.map((name) => {
      const node = this.owners.get(name) ?? null;
      this.known.set(name, node);
      return { node };
    });
  }

  learn(name: string, node: string | null): void {
    if (node === null) this.known.delete(name);
    else this.known.set(name, node);
  }
}

export function member(inc: string, state: NetworkMember["state"] = "up"): NetworkMember {
  return { inc, name: `node-${inc}`, state };
}

export function place(network: FakeNetwork, ownership: FakeOwnership, maxReachMs = 6000): ClusterPlacement {
  return new ClusterPlacement({ network, ownership, maxReachMs });
}

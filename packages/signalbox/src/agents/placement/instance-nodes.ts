/** On which nodes instances are, for operators, and moving one by hand. */
import { SignalboxError } from "@signalbox/protocol";
import type { NetworkMember, NodeNetwork } from "../../contracts/node-network.ts";
import { InstanceElsewhereError, type Ownership } from "../../engines/instance-store/index.ts";
import type { Directory } from "../instance/directory.ts";
import { databaseName, type InstanceRef } from "../instance/instance-ref.ts";
import { rendezvous } from "./rendezvous.ts";

export interface InstanceNodesParts {
  readonly network: Pick<NodeNetwork, "self" | "members" | "linkTo">;
  readonly ownership: Pick<Ownership, "isHeld" | "learn" | "find" | "claim">;
  readonly directory: Pick<Directory, "handOver">;
}

export class InstanceNodes {
  readonly #parts: InstanceNodesParts;

  constructor(parts: InstanceNodesParts) {
    this.#parts = parts;
  }

  /** The name of the node that owns each instance; null if no living node does. */
  async namesOf(refs: readonly InstanceRef[]): Promise<(string | null)[]> {
    const { network, ownership } = this.#parts;
    const names = refs.map(databaseName);
    // What this node has learned may be out of date.
    for (const name of names) if (!ownership.isHeld(name)) ownership.learn(name, null);
    const owners = await ownership.find(names);
    const members = new Map(network.members.map(({ inc, name }) => [inc, name]));
    return owners.map(({ node }) => (node === null ? null : (members.get(node) ?? null)));
  }

  /**
   * Gives an instance of this node to another one: `to` is the name or the id of a node; undefined selects one. Returns the name of the node. Rejects
   * with `InstanceElsewhereError` if another node owns the instance.
   */
  async move(ref: InstanceRef, to: string | undefined): Promise<string> {
    const { directory, network, ownership } = this.#parts;
    const name = databaseName(ref);
    const target = to === undefined ? this.#select(name) : this.#find(to);
    // An instance without an owner has to have one before it can be given away.
    const [outcome] = await ownership.claim([name]);
    if (outcome?.kind === "elsewhere") throw new InstanceElsewhereError(outcome.node);
    if (target.inc !== network.self) await directory.handOver(ref, target.inc);
    return target.name;
  }

  /** The nodes to which an instance can move, as this node sees them. */
  get targets(): readonly NetworkMember[] {
    const { network } = this.#parts;
    const isHere = (inc: string) => inc === network.self || network.linkTo(inc) !== null;
    return network.members.filter(({ inc, state }) => state === "up" && isHere(inc));
  }

  #select(name: string): NetworkMember {
    const others = this.targets.filter(({ inc }) => inc !== this.#parts.network.self);
    const inc = rendezvous(
      name,
      others.map((other) => other.inc),
    );
    const target = others.find((other) => other.inc === inc);
    if (target === undefined)
      throw new SignalboxError("invalid_request", { message: "No other node of the cluster is up" });
    return target;
  }

  #find(to: string): NetworkMember {
    const found = this.targets.filter(({ inc, name }) => inc === to || name === to);
    const [target] = found;
    if (target === undefined)
      throw new SignalboxError("invalid_request", { message: `No node with the name or id "${to}" is up` });
    if (found.length > 1)
      throw new SignalboxError("invalid_request", {
        message: `Several nodes have the name "${to}": use the id of one (${found.map(({ inc }) => inc).join(", ")})`,
      });
    return target;
  }
}

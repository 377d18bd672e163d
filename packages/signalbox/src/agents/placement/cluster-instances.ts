/** The instances of this node as a part of a cluster: it takes the due work of nodes that are gone, and gives its instances away before it stops. */
import { setTimeout as sleep } from "node:timers/promises";
import { drainInstances, type DrainParts } from "./drain.ts";
import type { ClusterPlacement } from "./cluster-placement.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceCatalog } from "../instance/instance-catalog.ts";
import type { Ownership } from "../../engines/instance-store/index.ts";
import { InstanceNodes } from "./instance-nodes.ts";
import { Orphans, type OrphansParts } from "./orphans.ts";

/** How long a node answers that its instances are elsewhere: much longer than a call between nodes takes. */
const LINGER_MS = 1000;

export interface ClusterInstancesParts extends Omit<OrphansParts & DrainParts, "candidate" | "wake"> {
  readonly ownership: Ownership;
  readonly catalog: InstanceCatalog;
  readonly directory: Directory;
  readonly placement: Pick<ClusterPlacement, "candidate">;
}

export class ClusterInstances {
  readonly #parts: ClusterInstancesParts;
  readonly #orphans: Orphans;
  readonly nodes: InstanceNodes;

  constructor(parts: ClusterInstancesParts) {
    this.#parts = parts;
    this.nodes = new InstanceNodes(parts);
    this.#orphans = new Orphans({
      ...parts,
      candidate: (name) => parts.placement.candidate(name),
      wake: (entry) => parts.directory.wakeOrphan(entry),
    });
  }

  /** Instances with due work of nodes that were gone, woken here since the start. */
  get wokenOrphans(): number {
    return this.#orphans.woken;
  }

  start(): void {
    this.#orphans.start();
  }

  /** Never rejects: what is not handed over is found by the others when this node has left. */
  async retire(signal: AbortSignal): Promise<void> {
    this.stop();
    const { ownership } = this.#parts;
    const hadInstances = [...ownership.held].length > 0;
    try {
      await drainInstances(this.#parts, signal);
      // Other nodes may still send events here, and learn the new owners from the answers. The links must not end before.
      if (hadInstances && [...ownership.held].length === 0) await sleep(LINGER_MS);
    } catch (err) {
      this.#parts.logger.warn({ err }, "the instances of this node could not be handed over to other nodes");
    }
  }

  /** A scan in progress ends when the directory stops. */
  stop(): void {
    void this.#orphans.stop();
  }
}

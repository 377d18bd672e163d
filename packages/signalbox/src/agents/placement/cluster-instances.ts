/** The instances of this node as a part of a cluster: it takes the due work of nodes that are gone, and gives its instances away before it stops. */
import { awakeSignal } from "../../core/awake-time.ts";
import { drainInstances, type DrainParts } from "./drain.ts";
import type { ClusterPlacement } from "./cluster-placement.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceCatalog } from "../instance/instance-catalog.ts";
import type { Ownership } from "../../engines/instance-store/index.ts";
import { InstanceNodes } from "./instance-nodes.ts";
import { Orphans, type OrphansParts } from "./orphans.ts";

/** For instances that came here after this node had given its own away. */
const MAX_REST_MS = 5000;

export interface ClusterInstancesParts extends Omit<OrphansParts & DrainParts, "candidate" | "wakeAll"> {
  readonly ownership: Ownership;
  readonly catalog: InstanceCatalog;
  readonly directory: Directory;
  readonly placement: Pick<ClusterPlacement, "candidate">;
}

export class ClusterInstances {
  readonly #parts: ClusterInstancesParts;
  readonly #orphans: Orphans;
  readonly nodes: InstanceNodes;
  #isRetired = false;

  constructor(parts: ClusterInstancesParts) {
    this.#parts = parts;
    this.nodes = new InstanceNodes(parts);
    this.#orphans = new Orphans({
      ...parts,
      candidate: (name) => parts.placement.candidate(name),
      wakeAll: (source) => parts.directory.wakeOrphans(source),
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
  retire(signal: AbortSignal): Promise<void> {
    return this.#retire(signal, true);
  }

  async #retire(signal: AbortSignal, isDeferring: boolean): Promise<void> {
    this.#isRetired = true;
    this.stop();
    try {
      await drainInstances(this.#parts, signal, isDeferring);
    } catch (err) {
      this.#parts.logger.warn({ err }, "the instances of this node could not be handed over to other nodes");
    }
  }

  /**
   * Gives away what came here since `retire`: until the heartbeat that announces it, this node took instances. Does nothing if it was not retired.
   */
  async retireRest(): Promise<void> {
    if (this.#isRetired) await this.#retire(awakeSignal(MAX_REST_MS), false);
  }

  /** A scan in progress ends when the directory stops. */
  stop(): void {
    void this.#orphans.stop();
  }
}

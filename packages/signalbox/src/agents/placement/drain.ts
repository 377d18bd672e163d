/**
 * Gives the instances of this node to the others before it stops: first those that are not in memory, then the idle ones, then the busy ones, the
 * busiest last. An instance that is handed over is reached at its new owner at once; without this, the others would wait until this node has left.
 *
 * What is not handed over in time ends with the process, and the next event finds it without an owner.
 */
import type { NodeNetwork } from "../../contracts/node-network.ts";
import type { Ownership } from "../../engines/instance-store/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceCatalog } from "../instance/instance-catalog.ts";
import { databaseName, type InstanceRef, keyOf, refOf } from "../instance/instance-ref.ts";
import { rendezvous } from "./rendezvous.ts";

/** Instances that are not in memory, released with one statement for each node. */
const GROUP = 500;
/** Instances in memory that are closed at the same time. */
const CONCURRENCY = 16;

export interface DrainParts {
  readonly network: Pick<NodeNetwork, "self" | "members" | "linkTo">;
  readonly ownership: Pick<Ownership, "held">;
  readonly catalog: Pick<InstanceCatalog, "disown">;
  readonly directory: Pick<Directory, "find" | "handOver" | "handOverHook" | "isClosing" | "release">;
  readonly logger: Logger;
}

/** Resolves when this node owns nothing any more, no other node is up, or the signal aborts. */
export async function drainInstances(parts: DrainParts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const held = [...parts.ownership.held];
    if (held.length === 0 || targets(parts).length === 0) return;
    await releaseStored(parts, held, signal);
    const connected = held.map(refOf).filter((ref) => isConnected(parts, ref));
    await handOverAll(parts, connected, signal);
    const inMemory = held.flatMap((name) => parts.directory.find(refOf(name)) ?? []);
    await handOverAll(
      parts,
      inMemory.filter(({ isIdle }) => isIdle).map(({ ref }) => ref),
      signal,
    );
    const busy = inMemory.filter(({ isIdle }) => !isIdle);
    await handOverAll(
      parts,
      busy.toSorted((a, b) => a.waitingTurns - b.waitingTurns).map(({ ref }) => ref),
      signal,
    );
    // Events that arrived meanwhile may have loaded further ones.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Only nodes that answer: one that was just killed is in the list for some seconds. */
function targets({ network }: DrainParts): string[] {
  const { members, self } = network;
  return members
    .filter(({ inc, state }) => state === "up" && inc !== self && network.linkTo(inc) !== null)
    .map(({ inc }) => inc);
}

async function releaseStored(parts: DrainParts, held: readonly string[], signal: AbortSignal): Promise<void> {
  const { catalog, directory } = parts;
  const isStored = (name: string) => {
    const ref = refOf(name);
    return directory.find(ref) === undefined && !directory.isClosing(keyOf(ref)) && !isConnected(parts, ref);
  };
  for (let i = 0; i < held.length && !signal.aborted; i += GROUP) {
    const names = held.slice(i, i + GROUP).filter(isStored);
    await catalog.disown(names.map(refOf));
    const nodes = targets(parts);
    // An event may have loaded one of them during the statement.
    for (const [node, ofNode] of Map.groupBy(names.filter(isStored), (name) => rendezvous(name, nodes)))
      await directory.release(ofNode, node);
  }
}

/** Not in memory, but with connections that go with it. */
function isConnected({ directory }: DrainParts, ref: InstanceRef): boolean {
  return directory.find(ref) === undefined && directory.handOverHook?.concerns(ref) === true;
}

async function handOverAll(
  parts: DrainParts,
  instances: readonly InstanceRef[],
  signal: AbortSignal,
): Promise<void> {
  const queue = [...instances];
  const work = async () => {
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
      const node = rendezvous(databaseName(next), targets(parts));
      try {
        await parts.directory.handOver(next, node);
      } catch (err) {
        parts.logger.warn({ err, instance: keyOf(next) }, "an instance could not be handed over");
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

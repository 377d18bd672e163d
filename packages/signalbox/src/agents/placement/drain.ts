/**
 * Gives the instances of this node to the others before it stops: first those that are not in memory, then the idle ones, then the busy ones, the
 * busiest last. An instance that is handed over is reached at its new owner at once; without this, the others would wait until this node has left.
 *
 * An object whose worker defers updates (`updateDelayMs`) stays while it or one of its facets has work, with the events that arrive meanwhile. When its delay is over, its turns are interrupted.
 *
 * What is not handed over in time ends with the process, and the next event finds it without an owner.
 */
import { setImmediate, setTimeout } from "node:timers/promises";
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
/** How often objects that were kept are looked at. */
const KEPT_MS = 100;

export interface DrainParts {
  readonly network: Pick<NodeNetwork, "self" | "members" | "linkTo">;
  readonly ownership: Pick<Ownership, "held">;
  readonly catalog: Pick<InstanceCatalog, "disown">;
  readonly directory: Pick<Directory, "find" | "handOver" | "handOverHook" | "isClosing" | "release">;
  readonly logger: Logger;
}

/** Resolves when this node owns nothing any more, no other node is up, or the signal aborts. `isDeferring`: updates are deferred for objects that want it. */
export async function drainInstances(
  parts: DrainParts,
  signal: AbortSignal,
  isDeferring: boolean,
): Promise<void> {
  const since = performance.now();
  while (!signal.aborted) {
    const all = [...parts.ownership.held];
    if (all.length === 0 || targets(parts).length === 0) return;
    const kept = isDeferring ? keptFamilies(parts, all, performance.now() - since) : new Set<string>();
    const held = all.filter((name) => !kept.has(familyOf(refOf(name))));
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
    await (kept.size > 0 ? setTimeout(KEPT_MS) : setImmediate());
  }
}

/** An object and its facets, which have its name before a dot. */
const familyOf = ({ agent, name }: InstanceRef) => `${agent}/${name.split(".", 1)[0]}`;

/** Families that have work, and whose delay is not over. */
function keptFamilies({ directory }: DrainParts, held: readonly string[], elapsedMs: number): Set<string> {
  const kept = new Set<string>();
  for (const name of held) {
    const ref = refOf(name);
    const instance = directory.find(ref);
    if (instance !== undefined && !instance.isIdle && elapsedMs < (instance.updateDelayMs ?? 0))
      kept.add(familyOf(ref));
  }
  return kept;
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
    if (names.length === 0) continue;
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
        const isUpdating = parts.directory.find(next)?.updateDelayMs !== undefined;
        await parts.directory.handOver(next, node, isUpdating ? 0 : undefined);
      } catch (err) {
        parts.logger.warn({ err, instance: keyOf(next) }, "an instance could not be handed over");
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

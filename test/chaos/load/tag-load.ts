/**
 * Tags, written by one client per resource and read by many, each request at any node.
 *
 * Rules:
 * 1. A read that began after a write was acknowledged sees this write or a later one.
 * 2. A read that began after another read had ended sees the same version or a later one.
 * 3. A write that was answered with "nothing was written" is never seen.
 * 4. Requests are answered 200, or 503 while there is a fault.
 * 5. At the end all nodes return the same version.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { pick } from "../../support/ledger/random.ts";
import type { LoadTarget } from "../cluster/load-target.ts";
import { describe, errorCode, type Outcome, request, wasKilled } from "./chaos-client.ts";
import { anyNode, mayBeUnavailable, type LoadContext, type Workload } from "./workload.ts";

const RESOURCES = 6;
const READERS = 4;
const MAX_PAUSE_MS = 80;
/** `storage_unavailable`, the error that promises that nothing was written. */
const NOTHING_WRITTEN = 7013;
const PATH = "/accounts/default/tags";

interface Resource {
  readonly id: string;
  acknowledged: number;
  /** The highest version that was sent. */
  sent: number;
  /** The highest version that a finished read returned. */
  seen: number;
  readonly refused: Set<number>;
}

export class TagLoad implements Workload {
  readonly name = "tags";
  readonly needed = ["tag writes acknowledged", "tag reads"];
  readonly warmUp = this.needed;
  readonly #context: LoadContext;
  readonly #resources: readonly Resource[];

  constructor(context: LoadContext) {
    this.#context = context;
    this.#resources = Array.from({ length: RESOURCES }, (_, i) => ({
      id: `tagged-${i}`,
      acknowledged: 0,
      sent: 0,
      seen: 0,
      refused: new Set<number>(),
    }));
  }

  async prepare(): Promise<void> {
    for (const resource of this.#resources) await this.#write(resource);
  }

  clients(): Promise<void>[] {
    const writers = this.#resources.map((resource) => this.#repeat(() => this.#write(resource)));
    const readers = Array.from({ length: READERS }, () =>
      this.#repeat(() => this.#read(pick(this.#context.random, this.#resources), anyNode(this.#context))),
    );
    return [...writers, ...readers];
  }

  async settle(): Promise<void> {
    for (const resource of this.#resources) {
      const versions = new Set<number | null>();
      for (const node of this.#context.nodes) versions.add(await this.#read(resource, node));
      if (versions.size !== 1 || versions.has(null))
        this.#context.history.violation(
          `${resource.id}: the nodes return ${[...versions].join()} at the end`,
        );
    }
  }

  async #repeat(work: () => Promise<unknown>): Promise<void> {
    const { signal, random } = this.#context;
    while (!signal.aborted) {
      await work();
      await sleep(random() * MAX_PAUSE_MS);
    }
  }

  async #write(resource: Resource): Promise<void> {
    const version = ++resource.sent;
    const body = { resource_type: "worker", resource_id: resource.id, tags: { v: String(version) } };
    const outcome = await request(anyNode(this.#context), { method: "PUT", path: PATH, body });
    if (outcome === null || wasKilled(outcome)) return;
    if (outcome.status === 200) {
      resource.acknowledged = version;
      this.#context.history.count("tag writes acknowledged");
      return;
    }
    if (errorCode(outcome.body) === NOTHING_WRITTEN) resource.refused.add(version);
    this.#checkFailure("write", outcome);
  }

  /** Returns the version, or null. */
  async #read(resource: Resource, node: LoadTarget): Promise<number | null> {
    const { history } = this.#context;
    const { acknowledged, seen: seenBefore } = resource;
    const path = `${PATH}?resource_type=worker&resource_id=${resource.id}`;
    const outcome = await request(node, { method: "GET", path });
    if (outcome === null || wasKilled(outcome)) return null;
    if (outcome.status !== 200) {
      this.#checkFailure("read", outcome);
      return null;
    }
    history.count("tag reads");
    const { result } = outcome.body as { result: { tags: { v: string } } };
    const seen = Number(result.tags.v);
    if (seen < acknowledged || seen > resource.sent)
      history.violation(
        `${resource.id}: ${outcome.node.name} returned version ${seen} after ${acknowledged} was acknowledged`,
      );
    if (seen < seenBefore)
      history.violation(
        `${resource.id}: ${node.name} returned version ${seen} after a read of ${seenBefore}`,
      );
    if (resource.refused.has(seen))
      history.violation(`${resource.id}: version ${seen} was refused, and is stored`);
    resource.seen = Math.max(resource.seen, seen);
    return seen;
  }

  #checkFailure(what: string, outcome: Outcome): void {
    const { history } = this.#context;
    if (outcome.status === 503 && mayBeUnavailable(this.#context, outcome))
      history.count("tag requests without PostgreSQL");
    else history.violation(`a tag ${what} failed: ${describe(outcome)}`);
  }
}

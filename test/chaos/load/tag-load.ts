/**
 * Tags, written by one client per resource and read by many, each request at any node.
 *
 * Rules:
 * 1. A read that began after a write was acknowledged sees this write or a later one.
 * 2. A write that was answered with "nothing was written" is never seen.
 * 3. Requests are answered 200, or 503 while the node cannot reach PostgreSQL.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, errorCode, type Outcome, request, wasKilled } from "./chaos-client.ts";
import { anyNode, type LoadContext, type Workload } from "./workload.ts";

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
  readonly refused: Set<number>;
}

export class TagLoad implements Workload {
  readonly name = "tags";
  readonly needed = ["tag writes acknowledged", "tag reads"];
  readonly #context: LoadContext;
  readonly #resources: readonly Resource[];

  constructor(context: LoadContext) {
    this.#context = context;
    this.#resources = Array.from({ length: RESOURCES }, (_, i) => ({
      id: `tagged-${i}`,
      acknowledged: 0,
      sent: 0,
      refused: new Set<number>(),
    }));
  }

  async prepare(): Promise<void> {
    for (const resource of this.#resources) await this.#write(resource);
  }

  clients(): Promise<void>[] {
    const writers = this.#resources.map((resource) => this.#repeat(() => this.#write(resource)));
    const readers = Array.from({ length: READERS }, () =>
      this.#repeat(() => this.#read(this.#resources[Math.floor(this.#context.random() * RESOURCES)])),
    );
    return [...writers, ...readers];
  }

  async settle(): Promise<void> {
    for (const resource of this.#resources) await this.#read(resource);
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
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

  async #read(resource: Resource | undefined): Promise<void> {
    if (resource === undefined) return;
    const { history } = this.#context;
    const { acknowledged } = resource;
    const path = `${PATH}?resource_type=worker&resource_id=${resource.id}`;
    const outcome = await request(anyNode(this.#context), { method: "GET", path });
    if (outcome === null || wasKilled(outcome)) return;
    if (outcome.status !== 200) {
      this.#checkFailure("read", outcome);
      return;
    }
    history.count("tag reads");
    const { result } = outcome.body as { result: { tags: { v: string } } };
    const seen = Number(result.tags.v);
    if (seen < acknowledged || seen > resource.sent)
      history.violation(
        `${resource.id}: ${outcome.node.name} returned version ${seen} after ${acknowledged} was acknowledged`,
      );
    if (resource.refused.has(seen))
      history.violation(`${resource.id}: version ${seen} was refused, and is stored`);
  }

  #checkFailure(what: string, outcome: Outcome): void {
    const { history } = this.#context;
    if (outcome.status === 503) history.count("tag requests without PostgreSQL");
    else history.violation(`a tag ${what} failed: ${describe(outcome)}`);
  }
}

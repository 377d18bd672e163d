/** The calls that clients saw finish, compared with the call log at the end. */
import type { LoadTarget } from "../cluster/load-target.ts";
import { describe, logIdOf, type Outcome, request } from "./chaos-client.ts";
import type { LoadContext } from "./workload.ts";

const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const PER_PAGE = 1000;
/** What a killed node may not have written: the flush interval (200 ms), and the time of two writes on a busy machine, which was seen to be two seconds. */
const UNWRITTEN_MS = 5000;
/**
 * A write of rows is about ten statements through the proxy and a commit that the standby confirms. Each wakes several processes, and on a busy machine
 * each of them waits for a processor as the answer to a probe does.
 */
const STEPS = 40;

interface Finished {
  readonly node: LoadTarget;
  readonly gateway: string;
  readonly endedAt: number;
}

export class CallRecord {
  readonly #context: LoadContext;
  readonly #finished = new Map<string, Finished>();
  readonly #gateways = new Set<string>();

  constructor(context: LoadContext) {
    this.#context = context;
  }

  /** To be called for each answered call. Calls without a row (refused before they are logged) are ignored. */
  add(gateway: string, outcome: Outcome): void {
    const { node, endedAt } = outcome;
    this.#gateways.add(gateway);
    const id = logIdOf(outcome);
    if (id === null) return;
    const { history } = this.#context;
    if (this.#finished.has(id)) history.violation(`two calls have the log id ${id}`);
    this.#finished.set(id, { node, gateway, endedAt });
    history.count("calls finished");
  }

  /** Reads the whole log, each gateway at another node. */
  async settle(): Promise<void> {
    const { nodes, history } = this.#context;
    let next = 0;
    const listed = new Set<string>();
    for (const gateway of this.#gateways) {
      const node = nodes[next++ % nodes.length];
      if (node === undefined) continue;
      for (const id of await this.#readIds(node, gateway)) {
        if (listed.has(id)) history.violation(`the call ${id} of ${gateway} is listed twice at ${node.name}`);
        listed.add(id);
      }
    }
    history.count("calls listed", listed.size);
    for (const [id, call] of this.#finished) {
      if (listed.has(id)) continue;
      if (mayBeLost(call)) history.count("calls lost with a killed node");
      else history.violation(`the call ${id} of ${call.gateway} at ${call.node.name} is not in the log`);
    }
  }

  async #readIds(node: LoadTarget, gateway: string): Promise<string[]> {
    const ids: string[] = [];
    for (let page = 1; ; page++) {
      const path = `${GATEWAYS}/${gateway}/logs?per_page=${PER_PAGE}&page=${page}`;
      const answer = await request(node, { method: "GET", path });
      if (answer?.status !== 200) {
        const problem = answer === null ? `${node.name} is down` : describe(answer);
        this.#context.history.violation(`the log of ${gateway} cannot be read: ${problem}`);
        return ids;
      }
      const { result } = answer.body as { result: { id: string }[] };
      ids.push(...result.map(({ id }) => id));
      if (result.length < PER_PAGE) return ids;
    }
  }
}

/** Rows wait for PostgreSQL while it cannot be reached; a kill in this time loses them. */
function mayBeLost({ node, endedAt }: Finished): boolean {
  // A busy client may read an answer after the node that sent it was killed.
  const kill = node.kills.find((at) => at >= endedAt - UNWRITTEN_MS);
  if (kill === undefined) return false;
  const unwrittenMs = UNWRITTEN_MS + STEPS * node.readiness.slowestWithin(endedAt, endedAt + UNWRITTEN_MS);
  const isolatedFrom = node.isolation.startBefore(kill, unwrittenMs) ?? kill;
  return endedAt >= Math.min(kill, isolatedFrom) - unwrittenMs;
}

/** What the nodes of a cluster report about themselves, so that the list at any node shows all of them. */
import type { NodeNetwork } from "../contracts/node-network.ts";
import { awakeSignal } from "../core/awake-time.ts";

/** Older nodes do not know the question; they have no report. */
const REPORT = "cluster.report";
/** A list must not wait for a node that hangs. */
const ANSWER_MS = 1000;

export class NodeReports<Report> {
  readonly #network: Pick<NodeNetwork, "self" | "members" | "call">;
  readonly #own: () => Report;
  readonly #parse: (value: unknown) => Report | null;

  constructor(
    network: Pick<NodeNetwork, "self" | "members" | "call" | "serve">,
    own: () => Report,
    parse: (value: unknown) => Report | null,
  ) {
    this.#network = network;
    this.#own = own;
    this.#parse = parse;
    network.serve(REPORT, () => Buffer.from(JSON.stringify(own())));
  }

  /** By incarnation. A node that does not answer in time has none. */
  async read(): Promise<ReadonlyMap<string, Report>> {
    const { self, members } = this.#network;
    const entries = await Promise.all(
      members.map(async ({ inc }) => [inc, inc === self ? this.#own() : await this.#ask(inc)] as const),
    );
    return new Map(entries.filter((entry): entry is [string, Report] => entry[1] !== null));
  }

  async #ask(node: string): Promise<Report | null> {
    try {
      const signal = awakeSignal(ANSWER_MS);
      const answer = await this.#network.call(node, REPORT, new Uint8Array(0), signal);
      return this.#parse(JSON.parse(answer.toString()));
    } catch {
      return null;
    }
  }
}

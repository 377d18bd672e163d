/** Asks all nodes which instances of a page they run, and which of theirs are stuck: one message for each node. */
import type { NodeNetwork } from "../../contracts/node-network.ts";
import { awakeSignal } from "../../core/awake-time.ts";
import {
  findResidents,
  type Residency,
  residencyOf,
  type ResidentsParts,
  type ResidentsQuery,
} from "../management/residents.ts";
import { findStuck, type StuckQuery } from "../management/stuck.ts";
import type { PulseFigures } from "../instance/agent-pulse.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { Placement } from "../placement/placement.ts";

const RESIDENTS = "agents.residents";
const STUCK = "agents.stuck";
const PULSES = "agents.pulses";
/** A node that does not answer must not block a list; its instances are shown as idle. */
const ANSWER_MS = 2000;

const IDLE: Residency = {
  isInMemory: false,
  lastActiveAt: null,
  connectionCount: 0,
  objectName: null,
  turn: null,
  waitingTurns: 0,
};

/** What one node knows; null for an instance that it does not run. */
type Known = readonly (Residency | null)[];

export class ClusterResidents {
  readonly #network: NodeNetwork;
  readonly #placement: Placement;
  readonly #parts: ResidentsParts & { now(): number };

  constructor(network: NodeNetwork, placement: Placement, parts: ResidentsParts & { now(): number }) {
    this.#network = network;
    this.#placement = placement;
    this.#parts = parts;
  }

  serve(): void {
    this.#network.serve(RESIDENTS, async (payload) =>
      Buffer.from(JSON.stringify(await this.#findHere(JSON.parse(payload.toString()) as ResidentsQuery))),
    );
    this.#network.serve(STUCK, async (payload) =>
      Buffer.from(JSON.stringify(findStuck(this.#parts, JSON.parse(payload.toString()) as StuckQuery))),
    );
    this.#network.serve(PULSES, async (payload) =>
      Buffer.from(JSON.stringify(this.#pulsesHere(JSON.parse(payload.toString()) as string))),
    );
  }

  readonly findStuck = async (query: StuckQuery): Promise<readonly InstanceRef[]> => {
    const question = Buffer.from(JSON.stringify(query));
    const answers = await Promise.all(
      this.#others().map((inc) => this.#ask<readonly InstanceRef[]>(inc, STUCK, question)),
    );
    return [...findStuck(this.#parts, query), ...answers.flat()];
  };

  readonly findPulses = async (account: string): Promise<readonly PulseFigures[]> => {
    const question = Buffer.from(JSON.stringify(account));
    const answers = await Promise.all(
      this.#others().map((inc) => this.#ask<readonly PulseFigures[]>(inc, PULSES, question)),
    );
    return [...this.#pulsesHere(account), ...answers.flat()];
  };

  readonly find = async (query: ResidentsQuery): Promise<readonly Residency[]> => {
    if (query.names.length === 0) return [];
    const question = Buffer.from(JSON.stringify(query));
    const others = this.#others().map((inc) => this.#ask<Known>(inc, RESIDENTS, question));
    const [own, ...answers] = await Promise.all([this.#findHere(query), ...others]);
    return query.names.map((_name, i) => merge([own, ...answers].map((known) => known[i] ?? null)));
  };

  #pulsesHere(account: string): PulseFigures[] {
    return this.#parts.pulses.read(account, this.#parts.now());
  }

  #others(): readonly string[] {
    const { self, members } = this.#network;
    return members.map(({ inc }) => inc).filter((inc) => inc !== self);
  }

  /** An empty list from a node that does not answer, or does not know the question. */
  async #ask<T extends readonly unknown[]>(node: string, name: string, question: Buffer): Promise<T> {
    try {
      return JSON.parse(
        (await this.#network.call(node, name, question, awakeSignal(ANSWER_MS))).toString(),
      ) as T;
    } catch {
      return [] as unknown as T;
    }
  }

  /** The name of an object is in its database, which only its owner may open. */
  async #findHere(query: ResidentsQuery): Promise<Known> {
    const { account, agent, names, areObjects } = query;
    if (!areObjects)
      return (await findResidents(this.#parts, query)).map((known) => (isKnown(known) ? known : null));
    const found: (Residency | null)[] = [];
    for (const name of names) {
      const ref = { account, agent, name };
      const isHere = (await this.#placement.find(ref)) === null;
      found.push(isHere ? await residencyOf(this.#parts, ref, true) : null);
    }
    return found;
  }
}

function isKnown({ isInMemory, connectionCount }: Residency): boolean {
  return isInMemory || connectionCount > 0;
}

/** The owner knows all connections; the node of a client may know some of them. */
function merge(known: readonly (Residency | null)[]): Residency {
  const present = known.filter((residency) => residency !== null);
  const owner = present.find(({ isInMemory }) => isInMemory) ?? present[0] ?? IDLE;
  return { ...owner, connectionCount: Math.max(0, ...present.map(({ connectionCount }) => connectionCount)) };
}

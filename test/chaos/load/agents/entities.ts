/**
 * The entities of a load. A client asks for one that few others use at present: otherwise all clients soon wait for the entities of the node that
 * is down, and the others have no load.
 */
import { pick, type Random } from "../../../support/ledger/random.ts";
import type { ChainModel } from "./chain-model.ts";

/** Clients of one entity at once. More than one, so that their events compete. */
const MAX_CLIENTS = 3;
const TRIES = 8;

export class Entities {
  readonly models: readonly ChainModel[];
  readonly #clients = new Map<ChainModel, number>();

  constructor(models: readonly ChainModel[]) {
    this.models = models;
  }

  async use(random: Random, work: (model: ChainModel) => Promise<void>): Promise<void> {
    const model = this.#choose(random);
    this.#clients.set(model, this.#clientsOf(model) + 1);
    try {
      await work(model);
    } finally {
      this.#clients.set(model, this.#clientsOf(model) - 1);
    }
  }

  #choose(random: Random): ChainModel {
    let best = pick(random, this.models);
    for (let i = 1; i < TRIES && this.#clientsOf(best) >= MAX_CLIENTS; i++) {
      const other = pick(random, this.models);
      if (this.#clientsOf(other) < this.#clientsOf(best)) best = other;
    }
    return best;
  }

  #clientsOf(model: ChainModel): number {
    return this.#clients.get(model) ?? 0;
  }
}

/** Adds up what the items of a job cost, by model. */
import { addUsage, type Usage } from "../../engines/relay/index.ts";
import { trainingRate } from "../limits/further-prices.ts";
import { costByCaller } from "../limits/price-table.ts";
import { packageIdOf } from "../limits/prices-package.ts";
import { highestCost, type PricingParts } from "../limits/step-price.ts";
import type { JobItem } from "./job-api.ts";

export interface ModelBill {
  readonly model: string;
  readonly usage: Usage;
  /** Dollars; null when no price is known. */
  readonly cost: number | null;
}

export class JobBill {
  readonly #pricing: PricingParts;
  readonly #provider: string;
  readonly #models = new Map<string, ModelBill>();

  constructor(pricing: PricingParts, provider: string) {
    this.#pricing = pricing;
    this.#provider = provider;
  }

  add(item: JobItem): void {
    const { model, usage } = item;
    const sum = this.#models.get(model);
    const cost = this.#costOf(item);
    this.#models.set(
      model,
      sum === undefined
        ? { model, usage, cost }
        : {
            model,
            usage: addUsage(sum.usage, usage),
            cost: sum.cost === null || cost === null ? null : sum.cost + cost,
          },
    );
  }

  /** A price of the caller counts once for the whole job if it is a total. */
  get models(): readonly ModelBill[] {
    const { custom } = this.#pricing;
    const all = [...this.#models.values()];
    if (custom === undefined) return all;
    return all.map((bill, i) => ({
      ...bill,
      cost: "total" in custom && i > 0 ? 0 : costByCaller(custom, bill.usage),
    }));
  }

  /** By item: a price may depend on the length of a call. */
  #costOf({ model, usage, isTraining }: JobItem): number | null {
    if (isTraining !== true) return highestCost(this.#pricing, this.#provider, [model], usage);
    const rate = trainingRate(packageIdOf(this.#provider) ?? "", model);
    if (rate !== null) return (usage.tokensIn * rate) / 1e6;
    return this.#pricing.unknownPrice === "allow" ? 0 : null;
  }
}

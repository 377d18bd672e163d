/**
 * Generated resources with about five tags each and skewed values: few environments, many teams, very many owners. The same size gives
 * the same resources on every machine.
 */

export interface GeneratedResource {
  readonly type: string;
  readonly id: string;
  readonly tags: ReadonlyMap<string, string>;
}

export class TagData {
  readonly size: number;
  readonly #random: () => number;
  readonly #pickers = new Map<number, (random: number) => number>();

  constructor(size: number, seed = 1) {
    this.size = size;
    this.#random = mulberry32(seed);
  }

  *resources(): Generator<GeneratedResource> {
    for (let i = 0; i < this.size; i++) yield { ...nameOf(i), tags: this.tags() };
  }

  /** Type and id of a random resource that exists. */
  randomName(): { type: string; id: string } {
    return nameOf(Math.floor(this.#random() * this.size));
  }

  /** A random set of tags. */
  tags(): Map<string, string> {
    const tags = new Map<string, string>();
    const environment = this.#random();
    const isProduction = environment < 0.475;
    if (environment < 0.95) tags.set("env", isProduction ? "prod" : environment < 0.76 ? "staging" : "dev");
    tags.set("team", `team-${this.#skewed(200)}`);
    if (this.#random() < 0.75) tags.set("region", `region-${this.#skewed(20)}`);
    if (this.#random() < 0.8) tags.set("cost-center", `cc-${this.#skewed(2000)}`);
    if (this.#random() < 0.6) tags.set("owner", `user-${this.#skewed(50_000)}@example.com`);
    if (this.#random() < 0.7) tags.set("repo", `example/repository-${this.#skewed(100_000)}`);
    if (this.#random() < 0.15) tags.set("tier", `tier-${this.#skewed(4)}`);
    // No production resource is archived, so that an AND of two frequent filters has an empty result.
    if (!isProduction && this.#random() < 0.1) tags.set("archived", "");
    return tags;
  }

  #skewed(count: number): number {
    let pick = this.#pickers.get(count);
    if (pick === undefined) {
      pick = zipf(count);
      this.#pickers.set(count, pick);
    }
    return pick(this.#random());
  }
}

function nameOf(i: number): { type: string; id: string } {
  const rest = i % 20;
  const type = rest < 12 ? "worker" : rest < 17 ? "queue" : "kv_namespace";
  return { type, id: `res-${i.toString(36).padStart(6, "0")}` };
}

/** Rank r has a weight of 1/r: few values are frequent, most are rare. */
function zipf(count: number): (random: number) => number {
  const cumulative = new Float64Array(count);
  let sum = 0;
  for (let i = 0; i < count; i++) cumulative[i] = sum += 1 / (i + 1);
  return (random) => {
    const wanted = random * sum;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((cumulative[middle] as number) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/** A small random number generator with a seed (Mulberry32, public domain). */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * Which totals answer a query for usage by whom, and their sum.
 *
 * Invariants:
 * 1. Every call of the period is in one figure. Calls without a value of a metadata key are all calls less those with a value.
 * 2. The figures of a value are exact, unless `isBounded`: then calls of values and keys beyond the bounds of `merge-totals.ts` are in `other`.
 * 3. A query is answered in two passes: the first counts the calls of each value, the second adds up the values that are listed. Memory depends
 *    on the number of values, not on that of hours.
 */
import { ByteTexts } from "./byte-texts.ts";
import { DAY_MS } from "./day-files.ts";
import { HOUR_MS } from "./batch-usage.ts";
import { USAGE_SUMS, type UsageSums } from "./columns.ts";
import { LATENCY_COLUMNS } from "./day-schema.ts";
import { dayOfHour } from "./merge-totals.ts";
import { TotalsBlob, WIDTH } from "./totals-blob.ts";
import { dimensionName, MORE_KEYS, parseTokenAndModel, TOKEN, TOKEN_AND_MODEL } from "./totals-dimension.ts";
import {
  MAX_FIGURES,
  type UsageBy,
  type UsageByFigures,
  type UsageByQuery,
  type UsageLabels,
} from "./usage-by.ts";

const SUM_NAMES = Object.keys(USAGE_SUMS) as (keyof UsageSums)[];
const IS_REAL = SUM_NAMES.map((name) => USAGE_SUMS[name].kind === "real");

/** The totals that a query reads. Times are starts of hours or days; `to` is exclusive. */
export interface TotalsPlan {
  readonly dimension: string;
  /** The dimensions whose blobs are read. */
  readonly dimensions: readonly string[];
  readonly from: number;
  readonly to: number;
  /** Days that are read as a whole; empty if `firstDay` equals `endDay`. Other hours are read one by one. */
  readonly firstDay: number;
  readonly endDay: number;
}

/** A stored blob, or a delta, of the plan. */
export interface TotalsRow {
  readonly gateway_id: string;
  readonly time: number;
  readonly dimension: string;
  readonly bytes: Uint8Array;
}

/** A dimension that a gateway has on a day. */
export interface KeptDimension {
  readonly gateway_id: string;
  readonly time: number;
  readonly dimension: string;
}

/** Null if no totals answer the query: by minute, by two dimensions, or by model and a metadata key. */
export function planTotals(query: UsageByQuery): TotalsPlan | null {
  const { groupBy, dimensions, only } = query;
  const names = new Set([...dimensions, ...only.map(({ dimension }) => dimension)].map(dimensionName));
  const [name] = names;
  if (name === undefined || names.size > 1 || groupBy.includes("minute")) return null;
  const isByModel = groupBy.includes("model") || groupBy.includes("provider");
  if (isByModel && name !== TOKEN) return null;
  const dimension = isByModel ? TOKEN_AND_MODEL : name;
  const from = Math.floor(query.from / HOUR_MS) * HOUR_MS;
  const to = Math.ceil(query.to / HOUR_MS) * HOUR_MS;
  const firstDay = Math.ceil(from / DAY_MS) * DAY_MS;
  const endDay = groupBy.includes("hour") ? firstDay : Math.max(firstDay, dayOfHour(to));
  const isToken = name === TOKEN;
  return { dimension, dimensions: isToken ? [dimension] : [dimension, TOKEN], from, to, firstDay, endDay };
}

/** Label and model of each value of a blob; label -1 for the remainder. */
interface Labelled {
  readonly labels: Int32Array;
  readonly models: Int32Array | null;
}

interface Part extends Labelled {
  readonly blob: TotalsBlob;
  readonly group: number;
  /** All calls of the place, of which some have a value. */
  readonly isAll: boolean;
  /** The key was not kept there. */
  readonly isUnknown: boolean;
}

interface Entry {
  readonly label: number;
  /** Index of provider and model. */
  readonly model: number;
}

interface Label {
  readonly value: string | null;
  /** Place among the listed values. */
  rank: number;
}

interface Group {
  readonly time: number | null;
  readonly gatewayId: string | null;
}

/** The label of calls without a value. */
const WITHOUT = 0;
const NONE = new Int32Array(0);
const NO_LABELS: Labelled = { labels: NONE, models: null };

export class TotalsQuery {
  readonly #query: UsageByQuery;
  readonly #plan: TotalsPlan;
  readonly #isToken: boolean;
  readonly #unknown: Set<string>;
  readonly #parts: Part[] = [];
  readonly #labels: Label[] = [{ value: null, rank: -1 }];
  /** Labels of tokens by value, and the values of a metadata key, whose labels are their numbers plus 1. */
  readonly #labelOf = new Map<string, number>();
  /** By label. */
  #calls = new Float64Array(64);
  readonly #texts = new ByteTexts();
  readonly #entries = new Map<string, Entry>();
  readonly #models: (readonly [provider: string | null, model: string | null])[] = [[null, null]];
  readonly #modelOf = new Map<string, number>();
  readonly #groups: Group[] = [];
  readonly #groupOf = new Map<string, number>();
  readonly #offsets = new Map<number, number>();
  #table = new Float64Array(64 * WIDTH);
  #isBounded = false;
  /** The values that are listed, those with the most calls first. */
  #values: readonly (string | null)[] = [];
  #otherValues = 0;
  #figures = 0;

  /** `kept`: the dimension of the query and `MORE_KEYS`, where days have them. */
  constructor(query: UsageByQuery, plan: TotalsPlan, kept: readonly KeptDimension[]) {
    this.#query = query;
    this.#plan = plan;
    this.#isToken = plan.dimensions.length === 1;
    const placeOf = ({ gateway_id: id, time }: KeptDimension) => `${time} ${id}`;
    const own = new Set(kept.filter(({ dimension }) => dimension !== MORE_KEYS).map(placeOf));
    const more = kept.filter(({ dimension }) => dimension === MORE_KEYS).map(placeOf);
    this.#unknown = new Set(more.filter((place) => !own.has(place)));
  }

  /** The first pass. */
  add({ gateway_id: gatewayId, time, dimension, bytes }: TotalsRow): void {
    const isAll = dimension !== this.#plan.dimension;
    const isUnknown = !this.#isToken && this.#unknown.has(`${dayOfHour(time)} ${gatewayId}`);
    // What is known of the key there is part of all calls, which are in `other`.
    if (isUnknown && !isAll) return;
    const blob = new TotalsBlob(bytes);
    const { labels, models } = isAll ? NO_LABELS : this.#isToken ? this.#ofTokens(blob) : this.#ofTexts(blob);
    this.#parts.push({ blob, group: this.#group(time, gatewayId), isAll, isUnknown, labels, models });
    if (isUnknown) this.#isBounded = true;
    else this.#countCalls(blob.calls(), isAll, labels);
  }

  /** By a metadata key: many values, which are the same on most days. */
  #ofTexts(blob: TotalsBlob): Labelled {
    const labels = blob.numbersIn(this.#texts);
    // The first label is that of calls without a value.
    for (let number = this.#labels.length - 1; number < this.#texts.size; number++)
      this.#labels.push({ value: this.#texts.text(number), rank: -1 });
    for (let i = 0; i < labels.length; i++) {
      if (labels[i] === -1) this.#isBounded = true;
      else labels[i] = (labels[i] as number) + 1;
    }
    return { labels, models: null };
  }

  #ofTokens(blob: TotalsBlob): Labelled {
    const { values } = blob;
    const labels = new Int32Array(values.length);
    const models = this.#plan.dimension === TOKEN_AND_MODEL ? new Int32Array(values.length) : null;
    for (const [i, value] of values.entries()) {
      if (value === null) {
        labels[i] = -1;
        this.#isBounded = true;
      } else if (models === null) labels[i] = this.#label(value);
      else {
        const entry = this.#entry(value);
        labels[i] = entry.label;
        models[i] = entry.model;
      }
    }
    return { labels, models };
  }

  #countCalls(calls: Float64Array, isAll: boolean, labels: Int32Array): void {
    let total = 0;
    const sums = this.#callsOfLabels();
    for (let i = 0; i < calls.length; i++) {
      const count = calls[i] as number;
      const label = isAll ? -1 : (labels[i] as number);
      total += count;
      if (label !== -1) sums[label] = (sums[label] as number) + count;
    }
    if (!this.#isToken) sums[WITHOUT] = (sums[WITHOUT] as number) + (isAll ? total : -total);
  }

  /** Long enough for all labels. */
  #callsOfLabels(): Float64Array {
    if (this.#calls.length < this.#labels.length) {
      const larger = new Float64Array(2 * this.#labels.length);
      larger.set(this.#calls);
      this.#calls = larger;
    }
    return this.#calls;
  }

  get parts(): number {
    return this.#parts.length;
  }

  /** Between the passes: selects the values that are listed. */
  rank(): void {
    const { only, maxValues } = this.#query;
    const selected = this.#labels
      .map((label, i) => ({ label, value: label.value, calls: this.#calls[i] ?? 0 }))
      .filter(({ calls, value }) => calls > 0 && only.every((one) => one.value === value));
    // Thousands of values have equally many calls, and only those that are listed need an order.
    const least =
      Float64Array.from(selected, ({ calls }) => calls)
        .sort()
        .at(-maxValues) ?? 0;
    const listed = selected.filter(({ calls }) => calls >= least);
    listed.sort((a, b) => b.calls - a.calls || (String(a.value) < String(b.value) ? -1 : 1));
    for (const { label } of selected) label.rank = maxValues;
    for (const [rank, { label }] of listed.entries()) label.rank = Math.min(rank, maxValues);
    this.#values = listed.slice(0, maxValues).map(({ value }) => value);
    this.#otherValues = selected.length - this.#values.length;
  }

  /** The second pass. */
  sum(index: number): void {
    const part = this.#parts[index];
    if (part === undefined) return;
    const { blob, group, isAll, isUnknown, labels, models } = part;
    // The table grows while places are looked up.
    if (isAll) {
      const all = this.#offset(group, 0, isUnknown ? this.#unknownSlot : this.#allSlot);
      blob.addListed(this.#table, NONE, NONE, all);
      return;
    }
    if (models !== null) {
      const offsets = labels.map((label, i) => this.#offset(group, models[i] ?? 0, this.#slotOf(label)));
      blob.addTo(this.#table, offsets);
      return;
    }
    const listed = new Int32Array(labels.length);
    const offsets = new Int32Array(labels.length);
    let count = 0;
    for (let i = 0; i < labels.length; i++) {
      const slot = this.#slotOf(labels[i] ?? -1);
      if (slot === this.#otherSlot) continue;
      listed[count] = i;
      offsets[count++] = this.#offset(group, 0, slot);
    }
    const other = count === labels.length ? -1 : this.#offset(group, 0, this.#otherSlot);
    blob.addListed(this.#table, listed.subarray(0, count), offsets.subarray(0, count), other);
  }

  #slotOf(label: number): number {
    const rank = label === -1 ? this.#otherSlot : (this.#labels[label]?.rank ?? -1);
    return rank === -1 ? this.#excludedSlot : rank;
  }

  finish(): UsageBy {
    if (!this.#isToken) this.#addWithout();
    const { dimensions, only } = this.#query;
    const figures: UsageByFigures[] = [];
    const append = (labels: UsageLabels | null, slot: number): void => {
      for (const [group, { time, gatewayId }] of this.#groups.entries()) {
        for (const [index, [provider, model]] of this.#models.entries()) {
          const at = this.#offsets.get(this.#key(group, index, slot));
          if (at === undefined || this.#table[at] === 0) continue;
          figures.push({ time, gatewayId, provider, model, labels, ...this.#sumsAt(at) });
        }
      }
    };
    for (const [rank, value] of this.#values.entries())
      append(
        dimensions.map(() => value),
        rank,
      );
    // Whether other values have calls that `only` selects is not known.
    if (only.length === 0) append(null, this.#otherSlot);
    return {
      figures: figures.sort((a, b) => (a.time ?? 0) - (b.time ?? 0)),
      otherValues: this.#otherValues,
      isBounded: this.#isBounded,
      countedFrom: null,
    };
  }

  /** Slots of a group after those of the listed values: other values, values that `only` excludes, all calls, calls of unknown values. */
  get #otherSlot(): number {
    return this.#values.length;
  }
  get #excludedSlot(): number {
    return this.#values.length + 1;
  }
  get #allSlot(): number {
    return this.#values.length + 2;
  }
  get #unknownSlot(): number {
    return this.#values.length + 3;
  }

  /** Adds the calls without a value: all calls less those with one. */
  #addWithout(): void {
    const rank = this.#labels[WITHOUT]?.rank ?? -1;
    for (const group of this.#groups.keys()) {
      const all = this.#offsets.get(this.#key(group, 0, this.#allSlot));
      if (rank !== -1 && all !== undefined) {
        const rest = this.#table.slice(all, all + WIDTH);
        for (let slot = 0; slot <= this.#excludedSlot; slot++) {
          const at = this.#offsets.get(this.#key(group, 0, slot));
          if (at !== undefined)
            for (let i = 0; i < WIDTH; i++) rest[i] = (rest[i] ?? 0) - (this.#table[at + i] ?? 0);
        }
        // The difference of two sums of fractions is hardly ever zero.
        const isNothing = (sum: number, i: number) =>
          IS_REAL[i] === true && Math.abs(sum) < 1e-9 * Math.abs(this.#table[all + i] ?? 0);
        this.#addAt(
          this.#offset(group, 0, rank),
          rest.map((sum, i) => (isNothing(sum, i) ? 0 : sum)),
        );
      }
      const unknown = this.#offsets.get(this.#key(group, 0, this.#unknownSlot));
      if (unknown === undefined) continue;
      this.#addAt(this.#offset(group, 0, this.#otherSlot), this.#table.slice(unknown, unknown + WIDTH));
    }
  }

  #addAt(at: number, sums: Float64Array): void {
    if (at < 0) return;
    for (const [i, sum] of sums.entries()) this.#table[at + i] = (this.#table[at + i] ?? 0) + sum;
  }

  #sumsAt(at: number): UsageSums & Pick<UsageByFigures, "latency" | "firstToken"> {
    const sums = this.#table.subarray(at, at + WIDTH);
    const [latency, firstToken] = [SUM_NAMES.length, SUM_NAMES.length + LATENCY_COLUMNS.length];
    return {
      ...(Object.fromEntries(SUM_NAMES.map((name, i) => [name, sums[i] ?? 0])) as unknown as UsageSums),
      latency: [...sums.subarray(latency, firstToken)],
      firstToken: [...sums.subarray(firstToken)],
    };
  }

  #group(time: number, gatewayId: string): number {
    const { groupBy } = this.#query;
    const start = groupBy.includes("hour") ? time : groupBy.includes("day") ? dayOfHour(time) : null;
    const gateway = groupBy.includes("gateway") ? gatewayId : null;
    const key = `${start}\n${gateway}`;
    let group = this.#groupOf.get(key);
    if (group === undefined) {
      group = this.#groups.length;
      this.#groups.push({ time: start, gatewayId: gateway });
      this.#groupOf.set(key, group);
    }
    return group;
  }

  #entry(value: string): Entry {
    let entry = this.#entries.get(value);
    if (entry === undefined) {
      const [token, provider, model] = parseTokenAndModel(value);
      entry = { label: this.#label(token), model: this.#model(provider, model) };
      this.#entries.set(value, entry);
    }
    return entry;
  }

  #label(value: string): number {
    // A call without a token.
    if (this.#isToken && value === "") return WITHOUT;
    let label = this.#labelOf.get(value);
    if (label === undefined) {
      label = this.#labels.length;
      this.#labels.push({ value, rank: -1 });
      this.#labelOf.set(value, label);
    }
    return label;
  }

  #model(provider: string, model: string): number {
    const { groupBy } = this.#query;
    const names = [
      groupBy.includes("provider") ? provider : null,
      groupBy.includes("model") ? model : null,
    ] as const;
    const key = names.join("\n");
    let index = this.#modelOf.get(key);
    if (index === undefined) {
      index = this.#models.length;
      this.#models.push(names);
      this.#modelOf.set(key, index);
    }
    return index;
  }

  #key(group: number, model: number, slot: number): number {
    return (group * this.#models.length + model) * (this.#values.length + 4) + slot;
  }

  /** Where the sums of a slot are; negative if they are not needed. */
  #offset(group: number, model: number, slot: number): number {
    const key = this.#key(group, model, slot);
    let at = this.#offsets.get(key);
    if (at !== undefined) return at;
    if (slot === this.#excludedSlot || slot === this.#allSlot) {
      if ((this.#labels[WITHOUT]?.rank ?? -1) === -1) return -1;
    } else if (++this.#figures > MAX_FIGURES + 1) {
      // The result is refused.
      return -1;
    }
    at = this.#offsets.size * WIDTH;
    this.#offsets.set(key, at);
    if (at + WIDTH > this.#table.length) {
      const larger = new Float64Array(this.#table.length * 2);
      larger.set(this.#table);
      this.#table = larger;
    }
    return at;
  }
}

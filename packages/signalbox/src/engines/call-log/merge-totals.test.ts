import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DAY, HOUR, NOON } from "./call-log-fixture.ts";
import { SUM_COLUMNS } from "./day-schema.ts";
import { MAX_DIMENSIONS, MAX_VALUES, mergeBlobs, planMerge } from "./merge-totals.ts";
import { encodeTotals, TotalsBlob } from "./totals-blob.ts";
import { MORE_KEYS, TOKEN } from "./totals-dimension.ts";
import { planTotals, TotalsQuery } from "./totals-query.ts";
import type { UsageByQuery } from "./usage-by.ts";

const WIDTH = SUM_COLUMNS.length;
const MIDNIGHT = NOON - DAY / 2;

/** `calls` calls, and nothing else. */
function sumsOf(calls: number): number[] {
  return SUM_COLUMNS.map((_, i) => (i === 0 ? calls : 0));
}

function encode(values: readonly (string | null)[], sums: readonly (readonly number[])[]): Uint8Array {
  return encodeTotals(values, Float64Array.from(sums.flat()));
}

function blobOf(calls: Readonly<Record<string, number>>): Uint8Array {
  return encode(Object.keys(calls), Object.values(calls).map(sumsOf));
}

function callsOf(bytes: Uint8Array): Map<string | null, number> {
  const blob = new TotalsBlob(bytes);
  const calls = blob.calls();
  return new Map(blob.values.map((value, i) => [value, calls[i] ?? 0]));
}

function decode(bytes: Uint8Array): { values: readonly (string | null)[]; sums: number[][] } {
  const blob = new TotalsBlob(bytes);
  const table = new Float64Array(blob.values.length * WIDTH);
  blob.addTo(
    table,
    Int32Array.from(blob.values, (_, i) => i * WIDTH),
  );
  return {
    values: blob.values,
    sums: blob.values.map((_, i) => [...table.subarray(i * WIDTH, (i + 1) * WIDTH)]),
  };
}

describe("a blob of totals", () => {
  it("of an earlier form has no values, and others are merged with it", () => {
    const head = Buffer.from(JSON.stringify({ sums: 9, values: "ada", isEmpty: false, hasRest: false }));
    const length = Buffer.from(Uint32Array.of(head.length).buffer);
    const earlier = Buffer.concat([length, head, Buffer.from([0, 5, 0, 0, 0, 0])]);
    expect(decode(earlier)).toEqual({ values: [], sums: [] });
    expect(callsOf(mergeBlobs([earlier, blobOf({ bob: 3 })]))).toEqual(new Map([["bob", 3]]));
  });

  it("has the values and sums that were written, whatever their size", () => {
    const bucket = fc.nat({ max: 2 ** 40 });
    const sum = fc.oneof(
      fc.nat(200),
      fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      fc.double({ noNaN: true }),
    );
    const entry = fc.tuple(
      fc.string(),
      fc.array(sum, { minLength: 9, maxLength: 9 }),
      fc.array(fc.oneof(fc.constant(0), bucket), { minLength: WIDTH - 9, maxLength: WIDTH - 9 }),
    );
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 20 }), fc.boolean(), (entries, hasRest) => {
        const sums = entries.map(([, own, buckets]) => [...own, ...buckets].map((one) => one + 0));
        const values: (string | null)[] = entries.map(([value]) => value);
        // The remainder is the last one.
        if (hasRest) values[values.length - 1] = null;
        expect(decode(encode(values, sums))).toEqual({ values, sums });
      }),
    );
  });
});

describe("a blob of which some values are listed", () => {
  it("gives the listed values their sums, and all others together the rest", () => {
    const sum = fc.oneof(fc.nat(200), fc.nat(2 ** 31 - 1), fc.nat({ max: 2 ** 40 }), fc.constant(0.25));
    const entry = fc.tuple(fc.array(sum, { minLength: WIDTH, maxLength: WIDTH }), fc.boolean());
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 30 }), (entries) => {
        const sums = entries.map(([own]) => own.map((one, i) => (i < 9 ? one : Math.floor(one))));
        const blob = new TotalsBlob(
          encode(
            entries.map((_, i) => `v${i}`),
            sums,
          ),
        );
        const listed = Int32Array.from([...entries.keys()].filter((i) => entries[i]?.[1] === true));
        // The first row of the table is for the others, and one listed value is skipped.
        const offsets = listed.map((_, i) => (i === 1 ? -1 : (i + 1) * WIDTH));
        const [own, all] = [new Float64Array(40 * WIDTH), new Float64Array(40 * WIDTH)];
        blob.addListed(own, listed, offsets, 0);
        const everywhere = new Int32Array(entries.length);
        listed.forEach((place, i) => (everywhere[place] = offsets[i] ?? 0));
        blob.addTo(all, everywhere);
        expect(own).toEqual(all);
      }),
    );
  });
});

describe("a merge of totals", () => {
  it("adds up the sums of each value", () => {
    expect(callsOf(mergeBlobs([blobOf({ ada: 1, bob: 2 }), blobOf({ bob: 3, eve: 4 })]))).toEqual(
      new Map([
        ["ada", 1],
        ["bob", 5],
        ["eve", 4],
      ]),
    );
  });

  it("keeps the values with the most calls apart, and loses no sum", () => {
    const many = Object.fromEntries(Array.from({ length: MAX_VALUES }, (_, i) => [`u${i}`, 2]));
    const merged = callsOf(
      mergeBlobs([blobOf({ rare: 1, rarer: 1 }), blobOf(many), blobOf({ often: 9, u5: 1 })]),
    );
    expect(merged.size).toBe(MAX_VALUES + 1);
    expect(merged.get("often")).toBe(9);
    expect(merged.get("u5")).toBe(3);
    expect(merged.get(null)).toBe(1 + 1 + 2);
    const again = callsOf(
      mergeBlobs([encode([...merged.keys()], [...merged.values()].map(sumsOf)), blobOf({ rare: 1 })]),
    );
    expect([...again.values()].reduce((sum, calls) => sum + calls, 0)).toBe(2 * MAX_VALUES + 13);
  });

  it("keeps a bounded number of keys of a day, and marks the day", () => {
    const delta = (dimension: string) => ({ gateway: 1, hour: NOON, dimension, bytes: blobOf({ x: 1 }) });
    const deltas = Array.from({ length: MAX_DIMENSIONS + 5 }, (_, i) => delta(`metadata:k${i}`));
    const merges = planMerge([delta(TOKEN), ...deltas], []);
    expect(merges.filter(({ isDay }) => !isDay)).toHaveLength(MAX_DIMENSIONS);
    expect(merges.find(({ dimension }) => dimension === MORE_KEYS)).toMatchObject({
      isDay: true,
      time: MIDNIGHT,
    });
    const kept = [{ gateway: 1, time: MIDNIGHT, dimension: "metadata:k200" }];
    expect(planMerge([delta("metadata:k200")], kept).map(({ dimension }) => dimension)).toEqual([
      "metadata:k200",
      "metadata:k200",
    ]);
  });
});

describe("a query of totals", () => {
  const query: UsageByQuery = {
    accountId: "a",
    gatewayIds: null,
    from: MIDNIGHT,
    to: MIDNIGHT + 2 * DAY,
    groupBy: [],
    dimensions: [{ kind: "metadata", key: "user" }],
    only: [],
    maxValues: 10,
  };
  const plan = planTotals(query);
  if (plan === null) throw new Error("totals answer the query");

  it("has calls of a key that was not kept in `other`, and says so", () => {
    const sum = new TotalsQuery(query, plan, [
      { gateway_id: "g", time: MIDNIGHT, dimension: MORE_KEYS },
      { gateway_id: "g", time: MIDNIGHT + DAY, dimension: MORE_KEYS },
      { gateway_id: "g", time: MIDNIGHT + DAY, dimension: plan.dimension },
    ]);
    const row = (time: number, dimension: string, calls: Record<string, number>) => ({
      gateway_id: "g",
      time,
      dimension,
      bytes: blobOf(calls),
    });
    sum.add(row(MIDNIGHT, TOKEN, { t: 5 }));
    // Not merged yet.
    sum.add(row(MIDNIGHT + HOUR, plan.dimension, { ada: 1 }));
    sum.add(row(MIDNIGHT + HOUR, TOKEN, { t: 1 }));
    sum.add(row(MIDNIGHT + DAY, TOKEN, { t: 7 }));
    sum.add(row(MIDNIGHT + DAY, plan.dimension, { ada: 4 }));
    sum.rank();
    for (let i = 0; i < sum.parts; i++) sum.sum(i);
    const { figures, isBounded } = sum.finish();
    expect(isBounded).toBe(true);
    expect(figures.map(({ labels, calls }) => [labels, calls])).toEqual([
      [["ada"], 4],
      [[null], 3],
      [null, 6],
    ]);
  });

  it("reads whole days, and the hours before and after them", () => {
    const times = { from: NOON + 1, to: NOON + 2 * DAY + 1 };
    expect(planTotals({ ...query, ...times })).toMatchObject({
      from: NOON,
      to: NOON + 2 * DAY + HOUR,
      firstDay: MIDNIGHT + DAY,
      endDay: MIDNIGHT + 2 * DAY,
    });
    const hours = planTotals({ ...query, ...times, groupBy: ["hour"] });
    expect(hours?.firstDay).toBe(hours?.endDay);
    expect(planTotals({ ...query, from: NOON, to: NOON + HOUR })).toMatchObject({
      firstDay: MIDNIGHT + DAY,
      endDay: MIDNIGHT + DAY,
    });
  });
});

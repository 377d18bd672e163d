import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  changeChunk,
  type Chunk,
  CHUNK_SPAN,
  chunkOf,
  collectMembers,
  countChunk,
  decodeChunk,
  encodeChunk,
  intersectChunks,
  subtractChunk,
  uniteChunks,
} from "./chunk.ts";

// Sparse sets are arrays, long runs are bits. Every operation is run with both.
const members: fc.Arbitrary<Set<number>> = fc
  .record({
    single: fc.array(fc.nat(CHUNK_SPAN - 1), { maxLength: 30 }),
    runs: fc.array(fc.tuple(fc.nat(CHUNK_SPAN - 3000), fc.nat(3000)), { maxLength: 2 }),
  })
  .map(({ single, runs }) => {
    const set = new Set(single);
    for (const [start, length] of runs) for (let i = 0; i < length; i++) set.add(start + i);
    return set;
  });

const toChunk = (set: ReadonlySet<number>) => chunkOf([...set].sort((a, b) => a - b));

function toArray(chunk: Chunk | null, from = 0): number[] {
  const out: number[] = [];
  if (chunk !== null) collectMembers(chunk, from, 0, CHUNK_SPAN, out);
  return out;
}
const sorted = (set: ReadonlySet<number>) => [...set].sort((a, b) => a - b);

it("intersects, subtracts, unites and counts like sets of numbers", () => {
  fc.assert(
    fc.property(members, members, fc.nat(CHUNK_SPAN - 1), (a, b, from) => {
      const [x, y] = [toChunk(a), toChunk(b)];
      expect(toArray(intersectChunks(x, y))).toEqual(sorted(a).filter((number) => b.has(number)));
      expect(toArray(subtractChunk(x, y))).toEqual(sorted(a).filter((number) => !b.has(number)));
      expect(toArray(uniteChunks([x, null, y]))).toEqual(sorted(new Set([...a, ...b])));
      expect(countChunk(x)).toBe(a.size);
      expect(toArray(x, from)).toEqual(sorted(a).filter((number) => number >= from));
      // The arguments are unchanged.
      expect(toArray(x)).toEqual(sorted(a));
    }),
    { numRuns: 200 },
  );
});

it("adds and removes members, and decodes what it encodes", () => {
  fc.assert(
    fc.property(members, members, members, (a, added, removed) => {
      const changed = changeChunk(toChunk(a), sorted(added), sorted(removed));
      const expected = sorted(new Set([...a, ...added])).filter((number) => !removed.has(number));
      expect(toArray(changed)).toEqual(expected);
      expect(changed === null).toBe(expected.length === 0);
      if (changed === null) return;
      const bytes = encodeChunk(changed);
      expect(bytes.length).toBeLessThanOrEqual(CHUNK_SPAN / 8);
      // A driver may return a part of a larger buffer, at an odd offset.
      const pooled = new Uint8Array(bytes.length + 1);
      pooled.set(bytes, 1);
      expect(toArray(decodeChunk(pooled.subarray(1)))).toEqual(expected);
    }),
    { numRuns: 200 },
  );
});

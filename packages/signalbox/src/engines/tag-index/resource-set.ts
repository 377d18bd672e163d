/**
 * Sets of resource numbers, read chunk by chunk: what a filter turns into. A small set is a list read from the postings at once; a
 * frequent value's or key's set stays in the database and gives up one chunk at a time, so that a page reads no more than it shows.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Queryable } from "../../core/queryable.ts";
import { sql } from "../../core/sql.ts";
import { type Chunk, CHUNK_SPAN, chunkOf, decodeChunk, lowerBound, uniteChunks } from "./chunk.ts";

export interface ResourceSet {
  /** Number of members, or more; decides which set is looked at first. */
  readonly size: number;
  /** True when `size` is the number of members. */
  readonly isExact: boolean;
  /** The only chunks that can have members, ascending; null when any can. */
  readonly chunkNumbers: readonly number[] | null;
  chunk(chunkNo: number): Promise<Chunk | null>;
}

/** A set given as ascending numbers. */
export function listSet(sorted: readonly number[]): ResourceSet {
  return {
    size: sorted.length,
    isExact: true,
    chunkNumbers: [...new Set(sorted.map((number) => Math.floor(number / CHUNK_SPAN)))],
    chunk: async (chunkNo) => {
      const base = chunkNo * CHUNK_SPAN;
      const members = sorted.slice(lowerBound(sorted, base), lowerBound(sorted, base + CHUNK_SPAN));
      return chunkOf(members.map((number) => number - base));
    },
  };
}

/** A frequent value (or, with value 0, a frequent key) whose chunks are stored. */
export function bitmapSet(
  queryable: Queryable,
  accountNo: number,
  keyNo: number,
  valueNo: number,
  size: number,
): ResourceSet {
  return {
    size,
    isExact: true,
    chunkNumbers: null,
    chunk: async (chunkNo) => {
      const row = await queryable.get<{ bits: Uint8Array }>(
        sql`SELECT bits FROM tag_bitmap
            WHERE account_no = ${accountNo} AND key_no = ${keyNo} AND value_no = ${valueNo} AND chunk_no = ${chunkNo}`,
      );
      return row === undefined ? null : decodeChunk(row.bits);
    },
  };
}

export function unionSet(sets: readonly ResourceSet[]): ResourceSet {
  const [only] = sets;
  if (only !== undefined && sets.length === 1) return only;
  const isListed = sets.every((set) => set.chunkNumbers !== null);
  return {
    size: sets.reduce((sum, set) => sum + set.size, 0),
    isExact: sets.length === 0,
    chunkNumbers: isListed
      ? [...new Set(sets.flatMap((set) => set.chunkNumbers ?? []))].sort((a, b) => a - b)
      : null,
    chunk: async (chunkNo) => {
      const chunks: (Chunk | null)[] = [];
      for (const set of sets) chunks.push(await set.chunk(chunkNo));
      return uniteChunks(chunks);
    },
  };
}

/** Resources whose name contains a text. It has no index: each chunk is one scan of its rows, so it is asked last and lets others in between. */
export function nameSet(queryable: Queryable, accountNo: number, folded: string): ResourceSet {
  const pattern = `%${folded.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
  return {
    size: Number.POSITIVE_INFINITY,
    isExact: false,
    chunkNumbers: null,
    chunk: async (chunkNo) => {
      const base = chunkNo * CHUNK_SPAN;
      const rows = await queryable.all<{ resource_no: number }>(
        sql`SELECT resource_no FROM tag_resource
            WHERE account_no = ${accountNo} AND resource_no >= ${base} AND resource_no < ${base + CHUNK_SPAN}
              AND name_folded LIKE ${pattern} ESCAPE '\\'
            ORDER BY resource_no`,
      );
      await nextTurn();
      return chunkOf(rows.map((row) => row.resource_no - base));
    },
  };
}

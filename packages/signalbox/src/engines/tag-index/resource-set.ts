/**
 * Sets of resource numbers that are read chunk by chunk; every filter becomes one. A small set is a list that is read from the postings at once.
 * The set of a frequent key or value is read from the database some chunks at a time, so a page reads hardly more chunks than it needs.
 */
import type { Queryable } from "../../core/queryable.ts";
import { sql } from "../../core/sql.ts";
import { type Chunk, CHUNK_SPAN, chunkOf, decodeChunk, lowerBound, uniteChunks } from "./chunk.ts";
import { ANY_VALUE_NO, type StoredSetId } from "./dictionary.ts";

export interface ResourceSet {
  /** The number of members or an upper bound. The smallest set is read first. */
  readonly size: number;
  /** True if `size` is the exact number of members. */
  readonly isExact: boolean;
  /** The chunks that can have members, ascending; null if any chunk can. */
  readonly chunkNumbers: readonly number[] | null;
  chunk(chunkNo: number): Promise<Chunk | null>;
}

/** The set of the given ascending numbers. */
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

/** The resources that have a key, or a value of a key: from bitmaps if the row has them, otherwise from the postings. */
export async function storedSet(
  queryable: Queryable,
  id: StoredSetId,
  row: { readonly uses: number; readonly has_bitmap: number },
): Promise<ResourceSet> {
  return row.has_bitmap === 1
    ? bitmapSet(queryable, id, row.uses)
    : listSet(await readPostings(queryable, id));
}

/** Resource numbers from the postings, ascending. */
export async function readPostings(queryable: Queryable, id: StoredSetId): Promise<number[]> {
  const { accountNo, keyNo, valueNo } = id;
  if (valueNo !== ANY_VALUE_NO) {
    const rows = await queryable.all<{ resource_no: number }>(
      sql`SELECT resource_no FROM tag_posting
          WHERE account_no = ${accountNo} AND key_no = ${keyNo} AND value_no = ${valueNo}
          ORDER BY resource_no`,
    );
    return rows.map((row) => row.resource_no);
  }
  const rows = await queryable.all<{ resource_no: number }>(
    sql`SELECT resource_no FROM tag_posting WHERE account_no = ${accountNo} AND key_no = ${keyNo}`,
  );
  return rows.map((row) => row.resource_no).sort((a, b) => a - b);
}

/**
 * Chunks are asked for in ascending order. A statement costs several times what a chunk costs, on PostgreSQL a round trip: so an evaluation that goes on
 * reads more and more chunks with one statement. The first page of a filter usually needs one.
 */
const MAX_CHUNKS_PER_READ = 64;

function bitmapSet(queryable: Queryable, id: StoredSetId, size: number): ResourceSet {
  const { accountNo, keyNo, valueNo } = id;
  /** Chunks from `first` up to `end` have been read. */
  let read = new Map<number, Chunk>();
  let first = 0;
  let end = 0;
  return {
    size,
    isExact: true,
    chunkNumbers: null,
    chunk: async (chunkNo) => {
      if (chunkNo < first || chunkNo >= end) {
        const count = end - first;
        // One that lies far ahead comes from a set that skips most chunks.
        const isNext = chunkNo >= end && chunkNo - end <= count;
        first = chunkNo;
        end = chunkNo + (isNext && count > 0 ? Math.min(2 * count, MAX_CHUNKS_PER_READ) : 1);
        const rows = await queryable.all<{ chunk_no: number; bits: Uint8Array }>(
          sql`SELECT chunk_no, bits FROM tag_bitmap
              WHERE account_no = ${accountNo} AND key_no = ${keyNo} AND value_no = ${valueNo}
                AND chunk_no >= ${first} AND chunk_no < ${end}`,
        );
        read = new Map(rows.map((row) => [row.chunk_no, decodeChunk(row.bits)]));
      }
      return read.get(chunkNo) ?? null;
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

/**
 * Resources whose name contains a text. Names are not indexed: each chunk is a scan of its rows. The set is therefore read last.
 */
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
      return chunkOf(rows.map((row) => row.resource_no - base));
    },
  };
}

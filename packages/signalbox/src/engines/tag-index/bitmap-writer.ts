/** Creates and updates the bitmap chunks of a frequent key or value. */
import type { Queryable } from "../../core/queryable.ts";
import { sql } from "../../core/sql.ts";
import { changeChunk, CHUNK_SPAN, type Chunk, chunkOf, decodeChunk, encodeChunk } from "./chunk.ts";
import type { StoredSetId } from "./dictionary.ts";
import { readPostings } from "./resource-set.ts";

/** Resource numbers, ascending. */
export interface NetChanges {
  readonly gained: readonly number[];
  readonly lost: readonly number[];
}

/** Creates the chunks from the postings, which must be up to date. */
export async function createBitmap(tx: Queryable, id: StoredSetId): Promise<void> {
  for (const [chunkNo, numbers] of byChunk(await readPostings(tx, id))) {
    await storeChunk(tx, id, chunkNo, chunkOf(numbers));
  }
}

export async function updateBitmap(tx: Queryable, id: StoredSetId, changes: NetChanges): Promise<void> {
  const { accountNo, keyNo, valueNo } = id;
  const gained = byChunk(changes.gained);
  const lost = byChunk(changes.lost);
  for (const chunkNo of new Set([...gained.keys(), ...lost.keys()])) {
    const row = await tx.get<{ bits: Uint8Array }>(
      sql`SELECT bits FROM tag_bitmap WHERE account_no = ${accountNo} AND key_no = ${keyNo}
          AND value_no = ${valueNo} AND chunk_no = ${chunkNo}`,
    );
    const before = row === undefined ? null : decodeChunk(row.bits);
    const after = changeChunk(before, gained.get(chunkNo) ?? [], lost.get(chunkNo) ?? []);
    await storeChunk(tx, id, chunkNo, after);
  }
}

function byChunk(sorted: readonly number[]): Map<number, number[]> {
  const chunks = new Map<number, number[]>();
  for (const number of sorted) {
    const chunkNo = Math.floor(number / CHUNK_SPAN);
    const members = chunks.get(chunkNo);
    if (members === undefined) chunks.set(chunkNo, [number - chunkNo * CHUNK_SPAN]);
    else members.push(number - chunkNo * CHUNK_SPAN);
  }
  return chunks;
}

async function storeChunk(
  tx: Queryable,
  { accountNo, keyNo, valueNo }: StoredSetId,
  chunkNo: number,
  chunk: Chunk | null,
): Promise<void> {
  await tx.run(
    chunk === null
      ? sql`DELETE FROM tag_bitmap WHERE account_no = ${accountNo} AND key_no = ${keyNo}
            AND value_no = ${valueNo} AND chunk_no = ${chunkNo}`
      : sql`INSERT INTO tag_bitmap (account_no, key_no, value_no, chunk_no, bits)
            VALUES (${accountNo}, ${keyNo}, ${valueNo}, ${chunkNo}, ${encodeChunk(chunk)})
            ON CONFLICT (account_no, key_no, value_no, chunk_no) DO UPDATE SET bits = excluded.bits`,
  );
}

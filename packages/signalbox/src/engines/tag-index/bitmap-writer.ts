/** Writes the chunks of a frequent key or value. */
import type { Queryable } from "../../core/queryable.ts";
import { sql } from "../../core/sql.ts";
import { changeChunk, CHUNK_SPAN, type Chunk, chunkOf, decodeChunk, encodeChunk } from "./chunk.ts";
import { ANY_VALUE_NO } from "./dictionary.ts";

export interface NetChanges {
  /** Ascending. */
  readonly gained: readonly number[];
  readonly lost: readonly number[];
}

/** Applies the changes; with null, writes all chunks from the postings, which must be up to date. */
export async function writeBitmap(
  tx: Queryable,
  accountNo: number,
  keyNo: number,
  valueNo: number,
  changes: NetChanges | null,
): Promise<void> {
  if (changes === null) {
    const members = await readPostings(tx, accountNo, keyNo, valueNo);
    for (const [chunkNo, numbers] of byChunk(members)) {
      await storeChunk(tx, accountNo, keyNo, valueNo, chunkNo, chunkOf(numbers));
    }
    return;
  }
  const gained = byChunk(changes.gained);
  const lost = byChunk(changes.lost);
  for (const chunkNo of new Set([...gained.keys(), ...lost.keys()])) {
    const row = await tx.get<{ bits: Uint8Array }>(
      sql`SELECT bits FROM tag_bitmap WHERE account_no = ${accountNo} AND key_no = ${keyNo}
          AND value_no = ${valueNo} AND chunk_no = ${chunkNo}`,
    );
    const before = row === undefined ? null : decodeChunk(row.bits);
    const after = changeChunk(before, gained.get(chunkNo) ?? [], lost.get(chunkNo) ?? []);
    await storeChunk(tx, accountNo, keyNo, valueNo, chunkNo, after);
  }
}

async function readPostings(
  tx: Queryable,
  accountNo: number,
  keyNo: number,
  valueNo: number,
): Promise<number[]> {
  const rows =
    valueNo === ANY_VALUE_NO
      ? await tx.all<{ resource_no: number }>(
          sql`SELECT resource_no FROM tag_posting WHERE account_no = ${accountNo} AND key_no = ${keyNo}`,
        )
      : await tx.all<{ resource_no: number }>(
          sql`SELECT resource_no FROM tag_posting
              WHERE account_no = ${accountNo} AND key_no = ${keyNo} AND value_no = ${valueNo}`,
        );
  return rows.map((row) => row.resource_no).sort((a, b) => a - b);
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
  accountNo: number,
  keyNo: number,
  valueNo: number,
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

/** Creates and updates the bitmap chunks of a frequent key or value. */
import { LONGEST_LOOK_UP, LookUps } from "../../core/look-ups.ts";
import type { Queryable } from "../../core/queryable.ts";
import { RowsStatement } from "../../core/rows-statement.ts";
import { sql, type SqlValue } from "../../core/sql.ts";
import { changeChunk, CHUNK_SPAN, type Chunk, chunkOf, decodeChunk, encodeChunk } from "./chunk.ts";
import type { StoredSetId } from "./dictionary.ts";
import { readPostings } from "./resource-set.ts";

/** Resource numbers, ascending. */
export interface NetChanges {
  readonly gained: readonly number[];
  readonly lost: readonly number[];
}

/** What a batch changes in one set. */
export interface SetChanges {
  readonly id: StoredSetId;
  readonly net: NetChanges;
}

interface ChunkChanges {
  readonly id: StoredSetId;
  readonly chunkNo: number;
  readonly gained: readonly number[];
  readonly lost: readonly number[];
}

const readBits = new LookUps<{ readonly bits: Uint8Array }>("bits", "tag_bitmap", [
  "account_no",
  "key_no",
  "value_no",
  "chunk_no",
]);
const storeBits = new RowsStatement(
  "INSERT INTO tag_bitmap (account_no, key_no, value_no, chunk_no, bits) VALUES ",
  5,
  " ON CONFLICT (account_no, key_no, value_no, chunk_no) DO UPDATE SET bits = excluded.bits",
);

/** Collects chunks of several sets, which are written with few statements. */
export class BitmapWriter {
  readonly #tx: Queryable;
  #rows: SqlValue[] = [];

  constructor(tx: Queryable) {
    this.#tx = tx;
  }

  /** Creates the chunks from the postings, which must be up to date. */
  async create(id: StoredSetId): Promise<void> {
    for (const [chunkNo, numbers] of byChunk(await readPostings(this.#tx, id))) {
      const chunk = chunkOf(numbers);
      if (chunk !== null) this.#store(id, chunkNo, chunk);
    }
  }

  /** Changes the chunks of sets that have them. `pause` is awaited between parts of the work. */
  async update(sets: readonly SetChanges[], pause: () => Promise<void>): Promise<void> {
    const chunks = sets.flatMap(changedChunks);
    for (let at = 0; at < chunks.length; at += LONGEST_LOOK_UP) {
      const part = chunks.slice(at, at + LONGEST_LOOK_UP);
      const keys = part.flatMap(({ id, chunkNo }) => [id.accountNo, id.keyNo, id.valueNo, chunkNo]);
      const stored = await readBits.find(this.#tx, keys);
      for (const [i, change] of part.entries()) await this.#change(change, stored[i]?.bits);
      await pause();
    }
  }

  async #change({ id, chunkNo, gained, lost }: ChunkChanges, bits: Uint8Array | undefined): Promise<void> {
    const after = changeChunk(bits === undefined ? null : decodeChunk(bits), gained, lost);
    if (after !== null) this.#store(id, chunkNo, after);
    else
      await this.#tx.run(
        sql`DELETE FROM tag_bitmap WHERE account_no = ${id.accountNo} AND key_no = ${id.keyNo}
            AND value_no = ${id.valueNo} AND chunk_no = ${chunkNo}`,
      );
  }

  /** Writes what was collected. */
  async flush(): Promise<void> {
    const rows = this.#rows;
    this.#rows = [];
    await storeBits.run(this.#tx, rows);
  }

  #store({ accountNo, keyNo, valueNo }: StoredSetId, chunkNo: number, chunk: Chunk): void {
    this.#rows.push(accountNo, keyNo, valueNo, chunkNo, encodeChunk(chunk));
  }
}

function changedChunks({ id, net }: SetChanges): ChunkChanges[] {
  const gained = byChunk(net.gained);
  const lost = byChunk(net.lost);
  return [...new Set([...gained.keys(), ...lost.keys()])].map((chunkNo) => ({
    id,
    chunkNo,
    gained: gained.get(chunkNo) ?? [],
    lost: lost.get(chunkNo) ?? [],
  }));
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

/**
 * Texts as the index stores them. A sort key is the text's UTF-8 bytes, whose order is that of the code points, on every engine and in
 * every locale. A long text is cut and completed with a hash, so that an index entry stays small; such texts sort by their beginning.
 *
 * Invariant: two texts have the same sort key only if they are equal. A whole text is at most `WHOLE_BYTES` long and valid UTF-8; a cut
 * one is longer and holds the byte 0xFF, which UTF-8 never does.
 */
import { createHash } from "node:crypto";

const WHOLE_BYTES = 200;
const HEAD_BYTES = 184;
const HASH_BYTES = 16;
const CUT = 0xff;

export interface StoredText {
  readonly sortKey: Uint8Array;
  /** The whole text where the sort key is cut. */
  readonly fullText: Uint8Array | null;
}

export function toStoredText(text: string): StoredText {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= WHOLE_BYTES) return { sortKey: bytes, fullText: null };
  const sortKey = Buffer.alloc(HEAD_BYTES + 1 + HASH_BYTES, CUT);
  bytes.copy(sortKey, 0, 0, HEAD_BYTES);
  createHash("sha256")
    .update(bytes)
    .digest()
    .copy(sortKey, HEAD_BYTES + 1, 0, HASH_BYTES);
  return { sortKey, fullText: bytes };
}

export function toSortKey(text: string): Uint8Array {
  return toStoredText(text).sortKey;
}

export function fromStoredText(stored: {
  readonly sort_key: Uint8Array;
  readonly full_text: Uint8Array | null;
}): string {
  const bytes = stored.full_text ?? stored.sort_key;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** A longer prefix could not be told from the cut part of a sort key. */
export const MAX_PREFIX_BYTES = HEAD_BYTES;

/** The sort keys of all texts that begin with a prefix: from `low` inclusive to `high` exclusive. */
export function prefixRange(prefix: string): { low: Uint8Array; high: Uint8Array } {
  const low = Buffer.from(prefix, "utf8");
  return { low, high: Buffer.concat([low, Buffer.of(CUT, CUT)]) };
}

/**
 * Memory for response bytes on their way to a client. Pieces are cut from large slabs: a buffer of its own for each read costs an
 * allocation and later a collection, and node's pool is too small for what a stream brings at once.
 *
 * A slab lives as long as any piece of it, so what is kept longer than its call must be copied out.
 */
const SLAB_BYTES = 64 * 1024;
/** A larger piece gets memory of its own: it would leave too much of a slab unused. */
const MAX_PIECE_BYTES = SLAB_BYTES / 4;

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
let used = 0;

/** A copy that stays as it is. */
export function copyForRelay(bytes: Buffer): Buffer {
  const { length } = bytes;
  if (length > MAX_PIECE_BYTES) return Buffer.from(bytes);
  if (used + length > SLAB_BYTES) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    used = 0;
  }
  const piece = slab.subarray(used, used + length);
  used += length;
  bytes.copy(piece);
  return piece;
}

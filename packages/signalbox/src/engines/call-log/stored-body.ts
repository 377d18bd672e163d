/** A body as it is stored: cut at the limit, and compressed if that is worth the time. */
import { constants, zstdCompressSync } from "node:zlib";

/** Setting up a compression takes 30 to 80 µs and memory that is collected late; for a smaller body the disk space is not worth that. */
const MIN_COMPRESSED_BYTES = 2048;
/** A fifth faster than the default level on the 10 KB of a stream, for a few per cent more disk. */
const COMPRESSION_LEVEL = 1;
const MAX_CHUNK_BYTES = 64 * 1024;

export interface BodyBytes {
  readonly bytes: Uint8Array;
  readonly isZstd: boolean;
}

export function toStoredBody(body: Uint8Array, maxBytes: number): BodyBytes {
  const kept = body.length > maxBytes ? body.subarray(0, maxBytes) : body;
  const isZstd = kept.length >= MIN_COMPRESSED_BYTES;
  return { bytes: isZstd ? compress(kept) : kept, isZstd };
}

function compress(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, {
    pledgedSrcSize: bytes.length,
    chunkSize: Math.min(bytes.length, MAX_CHUNK_BYTES),
    params: { [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL },
  });
}

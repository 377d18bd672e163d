/**
 * Compresses many small values, one after the other. `zstdCompressSync` makes a stream object and the tables of a compressor for each value, which takes
 * longer than the compression itself. The handle below one stream of `node:zlib` can be used again and again. It must not be reset: that makes a
 * new compressor, without the parameters. A value that ends its frame leaves nothing behind.
 *
 * The handle is not part of Node's interface. So it is tried at the start, and each result is checked for completeness; the public function takes its
 * place where the handle does not behave as expected.
 */
import {
  constants,
  createZstdCompress,
  type ZstdCompress,
  zstdCompressSync,
  zstdDecompressSync,
} from "node:zlib";
import { COMPRESSION } from "./record.ts";

/** What is used of the handle: compresses at once, and leaves the free bytes of the output and the unread bytes of the input in `_writeState`. */
interface StreamParts {
  readonly _handle: {
    writeSync(
      flush: number,
      input: Buffer,
      inputOffset: number,
      inputLength: number,
      output: Buffer,
      outputOffset: number,
      outputLength: number,
    ): void;
  };
  readonly _writeState: Uint32Array;
}

const FIRST_OUTPUT_BYTES = 64 * 1024;
const PROBE = Buffer.from("a value that is compressed twice, and must be the same twice ".repeat(50));

export class ZstdFrames {
  #stream: ZstdCompress | null = null;
  #output = Buffer.allocUnsafeSlow(FIRST_OUTPUT_BYTES);

  constructor() {
    try {
      this.#stream = createZstdCompress(COMPRESSION);
      const isUsable = [1, 2].every(() => zstdDecompressSync(this.compress(PROBE)).equals(PROBE));
      if (!isUsable) this.#stream = null;
    } catch {
      // Another version of Node.js.
      this.#stream = null;
    }
  }

  /** True if the handle is used. */
  get isFast(): boolean {
    return this.#stream !== null;
  }

  /** The bytes are valid until the next call. */
  compress(raw: Buffer): Buffer {
    return (
      (this.#stream === null ? null : this.#compress(this.#stream, raw)) ?? zstdCompressSync(raw, COMPRESSION)
    );
  }

  /** Null if the output is not complete: what is left in the stream would precede the next value, so the stream is not used again. */
  #compress(stream: ZstdCompress, raw: Buffer): Buffer | null {
    // More than zstd needs for bytes that it cannot compress.
    const needed = raw.length + (raw.length >> 7) + 1024;
    if (needed > this.#output.length) this.#output = Buffer.allocUnsafeSlow(needed);
    const output = this.#output;
    const parts = stream as unknown as StreamParts;
    const { _handle: handle, _writeState: state } = parts;
    handle.writeSync(constants.ZSTD_e_end, raw, 0, raw.length, output, 0, output.length);
    const [free = 0, unread = 0] = state;
    if (unread === 0 && free > 0) return output.subarray(0, output.length - free);
    this.#stream = null;
    return null;
  }
}

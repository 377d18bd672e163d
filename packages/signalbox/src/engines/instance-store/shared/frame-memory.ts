/** Frames of commits that wait for their group, in one buffer that is used again and again. */

const FIRST_BYTES = 256 * 1024;
/** A larger buffer is not kept. */
const MAX_KEPT_BYTES = 8 * 1024 * 1024;

export interface FrameRange {
  readonly start: number;
  readonly end: number;
}

export class FrameMemory {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #end = 0;

  /** Copies the frames. */
  add(frames: Buffer): FrameRange {
    const start = this.#end;
    const end = start + frames.length;
    if (end > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(end, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, start);
      this.#bytes = larger;
    }
    frames.copy(this.#bytes, start);
    this.#end = end;
    return { start, end };
  }

  /** The frames of several ranges, in order. Valid until the next call of any method. */
  read(ranges: readonly FrameRange[]): Buffer {
    const [first] = ranges;
    if (first !== undefined && ranges.length === 1) return this.#bytes.subarray(first.start, first.end);
    return Buffer.concat(ranges.map(({ start, end }) => this.#bytes.subarray(start, end)));
  }

  /** Nothing of what was added is needed any more. */
  clear(): void {
    this.#end = 0;
    if (this.#bytes.length > MAX_KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  }
}

/**
 * The totals of one dimension as bytes: a list of values, and the sums of each, column by column.
 *
 *   length of the head │ head: {"sums": 9, "values": ["ada", …, null]} │ calls of all values │ errors of all values │ … │ histograms
 *
 * Most sums are small integers, so a column is a sequence of varints, or of doubles if it has others. A histogram is the list of its buckets that
 * are not zero. A row of a table with 39 columns takes 4 µs to read and add; a value here takes 0.1 µs.
 *
 * Later releases append sums, so the head has their number. The value null is the remainder: calls whose values have no name of their own.
 */
import { USAGE_SUMS } from "./columns.ts";
import { SUM_COLUMNS } from "./day-schema.ts";

const SUMS = Object.keys(USAGE_SUMS).length;
const WIDTH = SUM_COLUMNS.length;
const VARINTS = 0;
const DOUBLES = 1;
/** A varint has at most 8 bytes; a bucket has its number besides. */
const MAX_ENTRY_BYTES = SUMS * 8 + 8 + (WIDTH - SUMS) * 9;

interface Head {
  readonly sums: number;
  readonly values: readonly (string | null)[];
}

/** `sums` of each value are in the order of `SUM_COLUMNS`. */
export function encodeTotals(
  values: readonly (string | null)[],
  sums: readonly ArrayLike<number>[],
): Uint8Array {
  const head = Buffer.from(JSON.stringify({ sums: SUMS, values } satisfies Head));
  const bytes = Buffer.allocUnsafe(4 + head.length + SUMS + values.length * MAX_ENTRY_BYTES);
  const out = new Output(bytes, 4 + head.length);
  bytes.writeUInt32LE(head.length, 0);
  head.copy(bytes, 4);
  for (let column = 0; column < SUMS; column++) out.column(sums, column);
  for (const one of sums) out.histogram(one);
  return new Uint8Array(bytes.subarray(0, out.at));
}

export class TotalsBlob {
  readonly values: readonly (string | null)[];
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #sums: number;
  readonly #start: number;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const headBytes = this.#view.getUint32(0, true);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + 4, headBytes).toString();
    const { sums, values } = JSON.parse(text) as Head;
    this.values = values;
    this.#sums = sums;
    this.#start = 4 + headBytes;
  }

  /** Number of calls of each value. */
  calls(): Float64Array {
    const calls = new Float64Array(this.values.length);
    this.#at = this.#start;
    this.#column((i, count) => (calls[i] = count));
    return calls;
  }

  /** Adds the sums of the i-th value to those at `offsets[i]` of the table; a negative offset skips the value. */
  addTo(table: Float64Array, offsets: Int32Array, sign: 1 | -1 = 1): void {
    this.#at = this.#start;
    for (let column = 0; column < this.#sums; column++) {
      this.#column((i, sum) => {
        const at = offsets[i] ?? -1;
        if (at >= 0) table[at + column] = (table[at + column] ?? 0) + sign * sum;
      });
    }
    for (let i = 0; i < this.values.length; i++) {
      const at = offsets[i] ?? -1;
      for (let left = this.#varint(); left > 0; left--) {
        const bucket = this.#bytes[this.#at++] ?? 0;
        const count = this.#varint();
        if (at >= 0) table[at + SUMS + bucket] = (table[at + SUMS + bucket] ?? 0) + sign * count;
      }
    }
  }

  #column(use: (i: number, sum: number) => void): void {
    const isDoubles = this.#bytes[this.#at++] === DOUBLES;
    const count = this.values.length;
    for (let i = 0; i < count; i++) {
      if (isDoubles) {
        use(i, this.#view.getFloat64(this.#at, true));
        this.#at += 8;
      } else use(i, this.#varint());
    }
  }

  #varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes[this.#at++] ?? 0;
      if (byte < 128) return value + byte * factor;
      value += (byte - 128) * factor;
    }
  }
}

class Output {
  readonly #bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  column(sums: readonly ArrayLike<number>[], column: number): void {
    const isVarints = sums.every((one) => isCount(one[column] ?? 0));
    this.#bytes[this.at++] = isVarints ? VARINTS : DOUBLES;
    for (const one of sums) {
      if (isVarints) this.#varint(one[column] ?? 0);
      else this.at = this.#bytes.writeDoubleLE(one[column] ?? 0, this.at);
    }
  }

  histogram(sums: ArrayLike<number>): void {
    let buckets = 0;
    for (let i = SUMS; i < WIDTH; i++) if ((sums[i] ?? 0) > 0) buckets += 1;
    this.#varint(buckets);
    for (let i = SUMS; i < WIDTH; i++) {
      const count = sums[i] ?? 0;
      if (count <= 0) continue;
      this.#bytes[this.at++] = i - SUMS;
      this.#varint(count);
    }
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes[this.at++] = 128 + (rest % 128);
    this.#bytes[this.at++] = rest;
  }
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0);
}

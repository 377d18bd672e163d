/**
 * The totals of one dimension as bytes: a list of values, and the sums of each, column by column.
 *
 *   length of the head │ head: {"sums": 9, "count": 2, "hasRest": true, "all": […]} │ values: ada\nbob │ calls of all values │ errors of all values │ … │ lengths of histograms │ histograms
 *
 * A column has as many bytes for each sum as its largest needs, or is a sequence of doubles. A histogram is the list of its buckets that
 * are not zero. So the sums of some values are read without those of the others, which are all sums (`all`) less those: of 5,000 users a list has 100. A
 * row of a table with 39 columns takes 4 µs to read and add. Loops are by index and values are one text for the same reason.
 *
 * Later releases append sums, so the head has their number. The value null, which is the last one, is the remainder: calls whose values have no
 * name of their own.
 */
import type { ByteTexts } from "./byte-texts.ts";
import { USAGE_SUMS } from "./columns.ts";
import { SUM_COLUMNS } from "./day-schema.ts";

const SUMS = Object.keys(USAGE_SUMS).length;
/** Sums of a value, in the order of `SUM_COLUMNS`. */
export const WIDTH = SUM_COLUMNS.length;
/** How the sums of a column are stored: as unsigned integers of so many bytes, or as doubles, which have 8. */
const DOUBLES = 8;
/** A varint has at most 8 bytes; a bucket has its number besides, and a histogram its length and the number of its buckets. */
const MAX_ENTRY_BYTES = SUMS * 8 + 3 + (WIDTH - SUMS) * 9;
const SEPARATOR = "\n";
const NEW_LINE = 10;

interface Head {
  readonly sums: number;
  /** Number of values, without the remainder. */
  readonly count: number;
  /** Bytes of the text of the values, which follows the head. */
  readonly textBytes: number;
  /** The values, if one has the separator; otherwise null. */
  readonly list: readonly string[] | null;
  readonly hasRest: boolean;
  /** The sums of all values together, and then their histogram. */
  readonly all: readonly number[];
}

/** In place of a form that was never released: its sums by value are lost, those of all calls are elsewhere. */
const NOTHING: Head = { sums: 0, count: 0, textBytes: 0, list: null, hasRest: false, all: [] };

/** `table` has `WIDTH` sums for each value. Null may stand anywhere in the values, once. */
export function encodeTotals(values: readonly (string | null)[], table: Float64Array): Uint8Array {
  const count = values.length;
  const rest = values.indexOf(null);
  const named = values.filter((value) => value !== null);
  const order = new Int32Array(count);
  for (let i = 0, to = 0; i < count; i++) if (i !== rest) order[to++] = i * WIDTH;
  if (rest !== -1) order[count - 1] = rest * WIDTH;
  const isText = !named.some((value) => value.includes(SEPARATOR));
  const text = Buffer.from(isText ? named.join(SEPARATOR) : "");
  const head = Buffer.from(
    JSON.stringify({
      sums: SUMS,
      count: named.length,
      textBytes: text.length,
      list: isText ? null : named,
      hasRest: rest !== -1,
      all: sumOfAll(table, count),
    } satisfies Head),
  );
  const start = 4 + head.length + text.length;
  const bytes = Buffer.allocUnsafe(start + SUMS + count * MAX_ENTRY_BYTES);
  bytes.writeUInt32LE(head.length, 0);
  head.copy(bytes, 4);
  text.copy(bytes, 4 + head.length);
  const out = new Output(bytes, start);
  for (let column = 0; column < SUMS; column++) out.column(table, order, column);
  out.histograms(table, order);
  return new Uint8Array(bytes.subarray(0, out.at));
}

export class TotalsBlob {
  /** Number of values, with the remainder. */
  readonly count: number;
  readonly #head: Head;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #sums: number;
  readonly #all: readonly number[];
  readonly #textStart: number;
  /** Where the columns begin. */
  readonly #start: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const headBytes = this.#view.getUint32(0, true);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + 4, headBytes).toString();
    const head = JSON.parse(text) as Partial<Head>;
    this.#head = head.count === undefined ? NOTHING : (head as Head);
    const { sums, count, textBytes, hasRest, all } = this.#head;
    this.count = count + Number(hasRest);
    this.#sums = sums;
    this.#all = all;
    this.#textStart = 4 + headBytes;
    this.#start = this.#textStart + textBytes;
  }

  get values(): (string | null)[] {
    const { count, list, hasRest } = this.#head;
    const { buffer, byteOffset } = this.#bytes;
    const text = Buffer.from(buffer, byteOffset + this.#textStart, this.#start - this.#textStart).toString();
    const values: (string | null)[] = count === 0 ? [] : [...(list ?? text.split(SEPARATOR))];
    if (hasRest) values.push(null);
    return values;
  }

  /** The number of each value in `texts`; -1 for the remainder. Makes no strings. */
  numbersIn(texts: ByteTexts): Int32Array {
    const numbers = new Int32Array(this.count).fill(-1);
    const { count, list } = this.#head;
    const text = this.#bytes.subarray(this.#textStart, this.#start);
    if (list === null) texts.numberAll(text, NEW_LINE, count, numbers);
    else for (const [i, value] of list.entries()) numbers[i] = texts.numberOf(value);
    return numbers;
  }

  /** Number of calls of each value. */
  calls(): Float64Array {
    const calls = new Float64Array(this.count);
    this.#column(this.#start, calls);
    return calls;
  }

  /** Adds the sums of the i-th value to those at `offsets[i]` of the table; a negative offset skips the value. */
  addTo(table: Float64Array, offsets: Int32Array): void {
    const count = this.count;
    const sums = new Float64Array(count);
    let at = this.#start;
    for (let column = 0; column < this.#sums; column++) {
      at = this.#column(at, sums);
      for (let i = 0; i < count; i++) {
        const to = (offsets[i] as number) + column;
        if (to >= column) table[to] = (table[to] as number) + (sums[i] as number);
      }
    }
    at += 2 * count;
    for (let i = 0; i < count; i++) at = this.#histogram(at, table, (offsets[i] as number) + SUMS);
  }

  /**
   * Adds the sums of the values at the places `listed`, which ascend, to those at `offsets` of the table, and the sums of all other values to those at `other`.
   * Much quicker than `addTo` if few are listed.
   */
  addListed(table: Float64Array, listed: Int32Array, offsets: Int32Array, other: number): void {
    const rest = new Float64Array(WIDTH);
    for (let i = 0; i < this.#all.length; i++)
      rest[i < this.#sums ? i : i - this.#sums + SUMS] = this.#all[i] as number;
    const sums = { table, listed, offsets, rest };
    let at = this.#start;
    for (let column = 0; column < this.#sums; column++) at = this.#takeColumn(at, column, sums);
    this.#takeHistograms(at, sums);
    if (other < 0) return;
    for (let i = 0; i < WIDTH; i++) table[other + i] = (table[other + i] as number) + (rest[i] as number);
  }

  /** Returns the place after the column. */
  #takeColumn(start: number, column: number, { table, listed, offsets, rest }: ListedSums): number {
    const size = this.#bytes[start] as number;
    const first = start + 1;
    let taken = 0;
    for (let i = 0; i < listed.length; i++) {
      const sum = this.#sumAt(size, first + (listed[i] as number) * size);
      const to = (offsets[i] as number) + column;
      if (to >= column) table[to] = (table[to] as number) + sum;
      taken += sum;
    }
    // The difference of two sums of fractions is not exact, so the others are added up.
    rest[column] = size === DOUBLES ? this.#sumOfOthers(first, listed) : (rest[column] as number) - taken;
    return first + this.count * size;
  }

  #sumOfOthers(first: number, listed: Int32Array): number {
    const view = this.#view;
    const count = this.count;
    let sum = 0;
    for (let i = 0, next = 0; i < count; i++) {
      if (listed[next] === i) next += 1;
      else sum += view.getFloat64(first + i * DOUBLES, true);
    }
    return sum;
  }

  #takeHistograms(lengths: number, { table, listed, offsets, rest }: ListedSums): void {
    const view = this.#view;
    const own = new Float64Array(WIDTH);
    let at = lengths + 2 * this.count;
    for (let i = 0, place = 0; i < listed.length; i++) {
      for (; place < (listed[i] as number); place++) at += view.getUint16(lengths + 2 * place, true);
      this.#histogram(at, own.fill(0), SUMS);
      const to = offsets[i] as number;
      for (let bucket = SUMS; bucket < WIDTH; bucket++) {
        const calls = own[bucket] as number;
        if (to >= 0) table[to + bucket] = (table[to + bucket] as number) + calls;
        rest[bucket] = (rest[bucket] as number) - calls;
      }
    }
  }

  #sumAt(size: number, at: number): number {
    const view = this.#view;
    if (size === 1) return view.getUint8(at);
    if (size === 2) return view.getUint16(at, true);
    return size === 4 ? view.getUint32(at, true) : view.getFloat64(at, true);
  }

  /** Adds the histogram at a place to the buckets at `to`, and returns the place after it. A negative `to` skips it. */
  #histogram(start: number, table: Float64Array, to: number): number {
    const bytes = this.#bytes;
    let at = start;
    for (let left = bytes[at++] as number; left > 0; left--) {
      const bucket = to + (bytes[at++] as number);
      let calls = bytes[at++] as number;
      if (calls >= 128) {
        calls -= 128;
        for (let factor = 128, isMore = true; isMore; factor *= 128) {
          const byte = bytes[at++] as number;
          isMore = byte >= 128;
          calls += (isMore ? byte - 128 : byte) * factor;
        }
      }
      if (to >= SUMS) table[bucket] = (table[bucket] as number) + calls;
    }
    return at;
  }

  /** Reads the column at a place, and returns the place after it. */
  #column(start: number, sums: Float64Array): number {
    const size = this.#bytes[start] as number;
    let at = start + 1;
    for (let i = 0; i < sums.length; i++, at += size) sums[i] = this.#sumAt(size, at);
    return at;
  }
}

/** Sums of listed values go to a table, and out of `rest`, which has those of all values. */
interface ListedSums {
  readonly table: Float64Array;
  readonly listed: Int32Array;
  readonly offsets: Int32Array;
  readonly rest: Float64Array;
}

class Output {
  readonly #bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  column(table: Float64Array, order: Int32Array, column: number): void {
    let largest = 0;
    for (let i = 0; i < order.length && largest !== Infinity; i++) {
      const sum = table[(order[i] ?? 0) + column] ?? 0;
      largest = isCount(sum) ? Math.max(largest, sum) : Infinity;
    }
    const size = largest < 2 ** 8 ? 1 : largest < 2 ** 16 ? 2 : largest < 2 ** 32 ? 4 : DOUBLES;
    this.#bytes[this.at++] = size;
    for (let i = 0; i < order.length; i++) {
      const sum = table[(order[i] ?? 0) + column] ?? 0;
      if (size === DOUBLES) this.at = this.#bytes.writeDoubleLE(sum, this.at);
      else this.at = this.#bytes.writeUIntLE(sum, this.at, size);
    }
  }

  histograms(table: Float64Array, order: Int32Array): void {
    const lengths = this.at;
    this.at += 2 * order.length;
    for (let i = 0; i < order.length; i++) {
      const start = this.at;
      this.#histogram(table, order[i] ?? 0);
      this.#bytes.writeUInt16LE(this.at - start, lengths + 2 * i);
    }
  }

  #histogram(table: Float64Array, from: number): void {
    const start = this.at++;
    let buckets = 0;
    for (let i = SUMS; i < WIDTH; i++) {
      const count = table[from + i] ?? 0;
      if (count <= 0) continue;
      buckets += 1;
      this.#bytes[this.at++] = i - SUMS;
      this.#varint(count);
    }
    // Fewer than 128, so one byte.
    this.#bytes[start] = buckets;
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes[this.at++] = 128 + (rest % 128);
    this.#bytes[this.at++] = rest;
  }
}

function isCount(value: number): boolean {
  return value >= 0 && Number.isSafeInteger(value) && !Object.is(value, -0);
}

function sumOfAll(table: Float64Array, count: number): number[] {
  const all = new Float64Array(WIDTH);
  for (let i = 0; i < count; i++) {
    for (let column = 0; column < WIDTH; column++)
      all[column] = (all[column] as number) + (table[i * WIDTH + column] as number);
  }
  return [...all];
}

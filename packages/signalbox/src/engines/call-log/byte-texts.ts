/**
 * Numbers texts that are given as bytes: 0 for the first one, and the same number for the same bytes. A map of strings would have to make a string of
 * every value of every day, which takes ten times as long as finding it here.
 *
 * An open hash table (linear probing), at most half full. The bytes of all texts are one array.
 */
import { randomInt } from "node:crypto";

const FIRST_SLOTS = 1024;
/** FNV-1a with a beginning of its own in each process: callers choose the texts, and must not be able to choose texts with the same hash. */
const FIRST_HASH = randomInt(2 ** 32) | 0;
const HASH_FACTOR = 0x01000193;

export class ByteTexts {
  /** By slot: the number of a text plus 1; 0 if free. */
  #slots = new Int32Array(FIRST_SLOTS);
  /** By number. */
  #hashes = new Int32Array(FIRST_SLOTS);
  /** By number: where the text begins; its end is the beginning of the next one. */
  #starts = new Int32Array(FIRST_SLOTS);
  #bytes = new Uint8Array(16 * FIRST_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  numberOf(text: string): number {
    const bytes = Buffer.from(text);
    let hash = FIRST_HASH;
    for (const byte of bytes) hash = Math.imul(hash ^ byte, HASH_FACTOR);
    return this.#find(bytes, 0, bytes.length, hash);
  }

  /** Numbers the first `count` texts of a list with a byte between two of them. */
  numberAll(list: Uint8Array, separator: number, count: number, numbers: Int32Array): void {
    for (let i = 0, from = 0; i < count; i++) {
      let hash = FIRST_HASH;
      let to = from;
      for (; to < list.length; to++) {
        const byte = list[to] as number;
        if (byte === separator) break;
        hash = Math.imul(hash ^ byte, HASH_FACTOR);
      }
      numbers[i] = this.#find(list, from, to, hash);
      from = to + 1;
    }
  }

  text(number: number): string {
    const [from, to] = [this.#starts[number] as number, this.#starts[number + 1] as number];
    return Buffer.from(this.#bytes.buffer, from, to - from).toString();
  }

  #find(source: Uint8Array, from: number, to: number, hash: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = (this.#slots[slot] as number) - 1;
      if (number === -1) return this.#add(source, from, to, hash, slot);
      if (this.#hashes[number] === hash && this.#isEqual(number, source, from, to)) return number;
    }
  }

  #isEqual(number: number, source: Uint8Array, from: number, to: number): boolean {
    const start = this.#starts[number] as number;
    if ((this.#starts[number + 1] as number) - start !== to - from) return false;
    for (let i = from; i < to; i++) if (source[i] !== this.#bytes[start + i - from]) return false;
    return true;
  }

  #add(source: Uint8Array, from: number, to: number, hash: number, slot: number): number {
    const number = this.#size++;
    const start = this.#starts[number] as number;
    const end = start + to - from;
    if (number + 2 > this.#starts.length) this.#starts = larger(this.#starts, 2 * this.#starts.length);
    if (number + 1 > this.#hashes.length) this.#hashes = larger(this.#hashes, 2 * this.#hashes.length);
    if (end > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      bytes.set(this.#bytes);
      this.#bytes = bytes;
    }
    this.#bytes.set(source.subarray(from, to), start);
    this.#starts[number + 1] = end;
    this.#hashes[number] = hash;
    this.#slots[slot] = number + 1;
    if (2 * this.#size > this.#slots.length) this.#spread();
    return number;
  }

  /** Doubles the slots. */
  #spread(): void {
    const slots = new Int32Array(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (let number = 0; number < this.#size; number++) {
      let slot = (this.#hashes[number] as number) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number + 1;
    }
    this.#slots = slots;
  }
}

function larger(values: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const copy = new Int32Array(length);
  copy.set(values);
  return copy;
}

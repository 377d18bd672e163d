/**
 * A chunk: a set of numbers below 16,384. A small chunk is a sorted `Uint16Array`, a large one 16,384 bits in a `Uint32Array`, the empty one
 * null. Chunks are immutable; functions return a new chunk or one of their arguments.
 *
 * A stored chunk consists of the bytes of the array, little-endian: 2,048 bytes are bits, fewer bytes are sorted numbers.
 */

export type Chunk = Uint16Array | Uint32Array;

/**
 * Size of the range of numbers that a chunk covers. The bits fit into half a page of SQLite, so a change writes one page. A chunk four times
 * as large writes three pages and is hardly faster to read.
 */
export const CHUNK_SPAN = 16_384;
const WORDS = CHUNK_SPAN / 32;
const BITMAP_BYTES = CHUNK_SPAN / 8;
/** A chunk with more members is smaller as bits. */
const MAX_ARRAY_MEMBERS = BITMAP_BYTES / 2 - 1;
/** Up to this many changes are inserted into a small array directly; more changes are faster with bits. */
const MAX_SPLICES = 8;

/** The chunk with these members, which must be ascending. */
export function chunkOf(sorted: ArrayLike<number>): Chunk | null {
  if (sorted.length === 0) return null;
  if (sorted.length <= MAX_ARRAY_MEMBERS) {
    return sorted instanceof Uint16Array ? sorted : new Uint16Array(sorted);
  }
  const bits = new Uint32Array(WORDS);
  for (let i = 0; i < sorted.length; i++) setBit(bits, sorted[i] as number);
  return bits;
}

export function countChunk(chunk: Chunk | null): number {
  if (chunk === null) return 0;
  return chunk instanceof Uint16Array ? chunk.length : countBits(chunk);
}

export function intersectChunks(a: Chunk | null, b: Chunk | null): Chunk | null {
  if (a === null || b === null) return null;
  if (a instanceof Uint16Array) return filterMembers(a, b, true);
  if (b instanceof Uint16Array) return filterMembers(b, a, true);
  const bits = new Uint32Array(WORDS);
  let any = 0;
  for (let i = 0; i < WORDS; i++) any |= bits[i] = (a[i] as number) & (b[i] as number);
  return any === 0 ? null : bits;
}

export function subtractChunk(a: Chunk | null, b: Chunk | null): Chunk | null {
  if (a === null || b === null) return a;
  if (a instanceof Uint16Array) return filterMembers(a, b, false);
  const bits = new Uint32Array(a);
  if (b instanceof Uint16Array) {
    for (const number of b) clearBit(bits, number);
  } else {
    for (let i = 0; i < WORDS; i++) bits[i] = (bits[i] as number) & ~(b[i] as number);
  }
  return isEmpty(bits) ? null : bits;
}

export function uniteChunks(chunks: readonly (Chunk | null)[]): Chunk | null {
  const present = chunks.filter((chunk) => chunk !== null);
  if (present.length < 2) return present[0] ?? null;
  const bits = new Uint32Array(WORDS);
  for (const chunk of present) addAll(bits, chunk);
  return bits;
}

/** Appends `base` plus each member that is not below `from`, ascending, to `out` until `out` has `limit` elements. */
export function collectMembers(chunk: Chunk, from: number, base: number, limit: number, out: number[]): void {
  if (chunk instanceof Uint16Array) {
    for (let i = lowerBound(chunk, from); i < chunk.length && out.length < limit; i++) {
      out.push(base + (chunk[i] as number));
    }
    return;
  }
  for (let i = from >>> 5; i < WORDS && out.length < limit; i++) {
    let word = chunk[i] as number;
    if (i === from >>> 5) word &= -1 << (from & 31);
    while (word !== 0 && out.length < limit) {
      const lowest = word & -word;
      out.push(base + i * 32 + 31 - Math.clz32(lowest));
      word ^= lowest;
    }
  }
}

/** Adds and removes numbers. Adding a member and removing a number that is not a member have no effect. */
export function changeChunk(
  chunk: Chunk | null,
  added: readonly number[],
  removed: readonly number[],
): Chunk | null {
  if ((chunk === null || chunk instanceof Uint16Array) && added.length + removed.length <= MAX_SPLICES) {
    return chunkOf(changeArray(chunk ?? new Uint16Array(), added, removed));
  }
  const bits = new Uint32Array(WORDS);
  if (chunk !== null) addAll(bits, chunk);
  for (const number of added) setBit(bits, number);
  for (const number of removed) clearBit(bits, number);
  return compact(bits);
}

export function encodeChunk(chunk: Chunk): Uint8Array {
  return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

export function decodeChunk(bytes: Uint8Array): Chunk {
  // A typed array requires an aligned offset, which the pooled buffer of a driver may not have.
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  return aligned.byteLength === BITMAP_BYTES
    ? new Uint32Array(aligned.buffer, aligned.byteOffset, WORDS)
    : new Uint16Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 2);
}

function changeArray(chunk: Uint16Array, added: readonly number[], removed: readonly number[]): Uint16Array {
  const members = new Uint16Array(chunk.length + added.length);
  members.set(chunk);
  let length = chunk.length;
  for (const number of added) {
    const at = lowerBound(members.subarray(0, length), number);
    if (at < length && members[at] === number) continue;
    members.copyWithin(at + 1, at, length);
    members[at] = number;
    length += 1;
  }
  for (const number of removed) {
    const at = lowerBound(members.subarray(0, length), number);
    if (at === length || members[at] !== number) continue;
    members.copyWithin(at, at + 1, length);
    length -= 1;
  }
  return members.subarray(0, length);
}

function compact(bits: Uint32Array): Chunk | null {
  const count = countBits(bits);
  if (count === 0) return null;
  if (count > MAX_ARRAY_MEMBERS) return bits;
  const members: number[] = [];
  collectMembers(bits, 0, 0, count, members);
  return new Uint16Array(members);
}

function filterMembers(a: Uint16Array, b: Chunk, isMember: boolean): Uint16Array | null {
  const kept = new Uint16Array(a.length);
  let count = 0;
  if (b instanceof Uint16Array) {
    let at = 0;
    for (const number of a) {
      while (at < b.length && (b[at] as number) < number) at += 1;
      if ((b[at] === number) === isMember) kept[count++] = number;
    }
  } else {
    for (const number of a) if (hasBit(b, number) === isMember) kept[count++] = number;
  }
  return count === 0 ? null : kept.subarray(0, count);
}

function addAll(bits: Uint32Array, chunk: Chunk): void {
  if (chunk instanceof Uint16Array) {
    for (const number of chunk) setBit(bits, number);
  } else {
    for (let i = 0; i < WORDS; i++) bits[i] = (bits[i] as number) | (chunk[i] as number);
  }
}

function setBit(bits: Uint32Array, number: number): void {
  bits[number >>> 5] = (bits[number >>> 5] as number) | (1 << (number & 31));
}

function clearBit(bits: Uint32Array, number: number): void {
  bits[number >>> 5] = (bits[number >>> 5] as number) & ~(1 << (number & 31));
}

function hasBit(bits: Uint32Array, number: number): boolean {
  return ((bits[number >>> 5] as number) & (1 << (number & 31))) !== 0;
}

function isEmpty(bits: Uint32Array): boolean {
  for (let i = 0; i < WORDS; i++) if (bits[i] !== 0) return false;
  return true;
}

function countBits(bits: Uint32Array): number {
  let count = 0;
  for (let i = 0; i < WORDS; i++) {
    // Adds adjacent bits, then pairs, then nibbles, in parallel. The multiplication adds the four bytes in the top byte.
    let word = bits[i] as number;
    word -= (word >>> 1) & 0x55555555;
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
    count += Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return count;
}

/** Returns the index of the first element that is not below `number`. */
export function lowerBound(sorted: ArrayLike<number>, number: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

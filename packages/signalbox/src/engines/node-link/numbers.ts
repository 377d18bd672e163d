/** Numbers as bytes, little-endian, for what streams carry. From the shared pool: a memory of its own for each costs more than writing the number. */

/** Unsigned, of 32 bits. */
export function encodeUint32s(numbers: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(numbers.length * 4);
  for (let i = 0; i < numbers.length; i++) bytes.writeUInt32LE(numbers[i] ?? 0, i * 4);
  return bytes;
}

/** Integers up to 2^53. */
export function encodeFloat64(number: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeDoubleLE(number);
  return bytes;
}

/** The length of what follows the length itself, with 32 bits, and a kind of 8 bits. */
export function encodeItemHeader(length: number, kind: number): Buffer {
  const bytes = Buffer.allocUnsafe(5);
  bytes.writeUInt32LE(length);
  bytes[4] = kind;
  return bytes;
}

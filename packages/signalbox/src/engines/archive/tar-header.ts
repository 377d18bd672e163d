/**
 * The header of an entry in a tar archive: POSIX ustar, 512 bytes. Numbers are octal text; a size beyond 8 GiB is binary, as GNU tar writes it.
 */

export const BLOCK_BYTES = 512;
/** Two empty blocks end an archive. */
export const END = Buffer.alloc(2 * BLOCK_BYTES);

const NAME = { at: 0, length: 100 };
const MODE_AT = 100;
const SIZE = { at: 124, length: 12 };
const TIME_AT = 136;
const CHECKSUM = { at: 148, length: 8 };
const TYPE_AT = 156;
const MAGIC_AT = 257;
const FILE_TYPE = "0";
const MAX_OCTAL = 0o77777777777;
const NAME_PATTERN = /^(?:[A-Za-z0-9_-][A-Za-z0-9._-]*\/)*[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

export interface TarEntry {
  readonly name: string;
  readonly size: number;
}

export function isEntryName(name: string): boolean {
  return name.length <= NAME.length && NAME_PATTERN.test(name);
}

export function encodeHeader({ name, size }: TarEntry, modifiedAt: number): Buffer {
  if (!isEntryName(name)) throw new Error(`"${name}" cannot be the name of an entry`);
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name, NAME.at, "latin1");
  header.write("0000600\0", MODE_AT, "latin1");
  header.write("0000000\0".repeat(2), MODE_AT + 8, "latin1");
  if (size <= MAX_OCTAL) header.write(octal(size, SIZE.length), SIZE.at, "latin1");
  else {
    header.writeUInt8(0x80, SIZE.at);
    header.writeBigUInt64BE(BigInt(size), SIZE.at + SIZE.length - 8);
  }
  header.write(octal(Math.floor(modifiedAt / 1000), 12), TIME_AT, "latin1");
  header.write(FILE_TYPE, TYPE_AT, "latin1");
  header.write("ustar\x0000", MAGIC_AT, "latin1");
  header.write(`${octal(checksumOf(header), 7)} `, CHECKSUM.at, "latin1");
  return header;
}

/** Null for the block that ends the archive. Throws with a reason that names no file. */
export function decodeHeader(header: Buffer): TarEntry | null {
  if (header.every((byte) => byte === 0)) return null;
  if (header.toString("latin1", MAGIC_AT, MAGIC_AT + 5) !== "ustar") throw new Error("it is no tar archive");
  const checksum = Number.parseInt(text(header, CHECKSUM.at, CHECKSUM.length), 8);
  if (checksum !== checksumOf(header)) throw new Error("the header of an entry is damaged");
  const name = text(header, NAME.at, NAME.length);
  const type = header.toString("latin1", TYPE_AT, TYPE_AT + 1);
  if (!isEntryName(name) || type !== FILE_TYPE)
    throw new Error(`the entry ${JSON.stringify(name)} is not one of a backup`);
  const isBinary = header.readUInt8(SIZE.at) === 0x80;
  const size = isBinary
    ? Number(header.readBigUInt64BE(SIZE.at + SIZE.length - 8))
    : Number.parseInt(text(header, SIZE.at, SIZE.length), 8);
  if (!Number.isSafeInteger(size) || size < 0) throw new Error(`the size of the entry ${name} is damaged`);
  return { name, size };
}

/** The bytes after the content of an entry, up to the next block. */
export function paddingOf(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

function octal(value: number, length: number): string {
  return `${value.toString(8).padStart(length - 1, "0")}\0`;
}

function text(header: Buffer, at: number, length: number): string {
  const bytes = header.subarray(at, at + length);
  const end = bytes.indexOf(0);
  return bytes.toString("latin1", 0, end === -1 ? length : end).trim();
}

/** The field of the checksum itself counts as spaces. */
function checksumOf(header: Buffer): number {
  let sum = 0x20 * CHECKSUM.length;
  for (const [i, byte] of header.entries())
    if (i < CHECKSUM.at || i >= CHECKSUM.at + CHECKSUM.length) sum += byte;
  return sum;
}

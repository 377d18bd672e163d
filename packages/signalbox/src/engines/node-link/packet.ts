/**
 * The contents of calls and streams that carry a few texts and some bytes: 1 byte kind, 1 byte form of the texts, 2 bytes number of texts, 4 bytes
 * length of each text in characters, the texts, the bytes. Integers are little-endian.
 *
 * All texts are one string of one byte per character, or of two (UTF-16) if a character needs them: one conversion for all of them, and every string
 * arrives as it was, lone surrogates included. JSON of the same contents takes ten times the CPU time.
 */

export interface Packet {
  readonly kind: number;
  readonly texts: readonly (string | null)[];
  /** A view of the bytes that were decoded. */
  readonly bytes: Buffer;
}

export class PacketError extends Error {
  override readonly name = "PacketError";
}

const HEAD_BYTES = 4;
const LENGTH_BYTES = 4;
const NULL_LENGTH = 0xffff_ffff;
const MAX_TEXTS = 0xffff;
const LATIN1 = 0;
const UTF16 = 1;
// oxlint-disable-next-line no-control-regex -- all characters of one byte
const WIDE = /[^\u0000-\u00ff]/;
const NOTHING = new Uint8Array(0);

export function encodePacket(
  kind: number,
  texts: readonly (string | null)[],
  bytes: Uint8Array = NOTHING,
): Buffer {
  if (texts.length > MAX_TEXTS) throw new PacketError(`a packet of ${texts.length} texts`);
  const joined = texts.join("");
  const isWide = WIDE.test(joined);
  const textsAt = HEAD_BYTES + texts.length * LENGTH_BYTES;
  const bytesAt = textsAt + (isWide ? 2 * joined.length : joined.length);
  const packet = Buffer.allocUnsafe(bytesAt + bytes.length);
  packet[0] = kind;
  packet[1] = isWide ? UTF16 : LATIN1;
  packet.writeUInt16LE(texts.length, 2);
  for (let i = 0; i < texts.length; i++)
    packet.writeUInt32LE(texts[i]?.length ?? NULL_LENGTH, HEAD_BYTES + i * LENGTH_BYTES);
  packet.write(joined, textsAt, isWide ? "utf16le" : "latin1");
  packet.set(bytes, bytesAt);
  return packet;
}

/** Throws `PacketError` for bytes that are not a packet. */
export function decodePacket(packet: Buffer): Packet {
  const [kind, form] = packet;
  if (packet.length < HEAD_BYTES || kind === undefined || (form !== LATIN1 && form !== UTF16))
    throw new PacketError("not a packet");
  const count = packet.readUInt16LE(2);
  const textsAt = HEAD_BYTES + count * LENGTH_BYTES;
  if (textsAt > packet.length) throw new PacketError("a packet without the lengths of its texts");
  let characters = 0;
  for (let i = 0; i < count; i++) {
    const length = packet.readUInt32LE(HEAD_BYTES + i * LENGTH_BYTES);
    if (length !== NULL_LENGTH) characters += length;
  }
  const bytesAt = textsAt + (form === UTF16 ? 2 * characters : characters);
  if (bytesAt > packet.length) throw new PacketError("a packet with incomplete texts");
  const joined = packet.toString(form === UTF16 ? "utf16le" : "latin1", textsAt, bytesAt);
  const texts: (string | null)[] = [];
  let from = 0;
  for (let i = 0; i < count; i++) {
    const length = packet.readUInt32LE(HEAD_BYTES + i * LENGTH_BYTES);
    texts.push(length === NULL_LENGTH ? null : joined.slice(from, from + length));
    if (length !== NULL_LENGTH) from += length;
  }
  return { kind, texts, bytes: packet.subarray(bytesAt) };
}

/** The packet at the beginning of a stream, with its length before it. */
export function encodeStreamHead(packet: Buffer): Buffer {
  const head = Buffer.allocUnsafe(4 + packet.length);
  head.writeUInt32LE(packet.length, 0);
  head.set(packet, 4);
  return head;
}

/** Reads what `encodeStreamHead` wrote from the first bytes of a stream, however they are split. */
export class StreamHeadReader {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Null until the packet is complete; then the packet and the bytes after it. Throws `PacketError`. */
  read(chunk: Buffer): { readonly packet: Packet; readonly rest: Buffer } | null {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < 4) return null;
    const all = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [all];
    const length = all.readUInt32LE(0);
    if (length > this.#maxBytes) throw new PacketError(`a head of ${length} bytes exceeds the limit`);
    if (all.length < 4 + length) return null;
    return { packet: decodePacket(all.subarray(4, 4 + length)), rest: all.subarray(4 + length) };
  }
}

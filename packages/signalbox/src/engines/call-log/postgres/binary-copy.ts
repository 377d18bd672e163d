/**
 * Rows in the binary format of COPY: a header, then for each row the number of its fields and each field as its length and its bytes.
 *
 * One buffer is filled and sent at a time. The driver copies a chunk before it returns, so the buffer is reused.
 */

const CHUNK_BYTES = 256 * 1024;
const SIGNATURE = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
/** The signature, flags, and the length of an empty extension. */
const HEADER = Buffer.concat([SIGNATURE, Buffer.alloc(8)]);
const TRAILER = Buffer.from([0xff, 0xff]);
const NULL = -1;

export class BinaryRows {
  #buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  #at = 0;
  #rowStart = 0;

  /** Encodes rows: `encode` adds the fields of each item. */
  *chunks<T>(items: Iterable<T>, fields: number, encode: (item: T) => void): Generator<Buffer, void> {
    this.#at = HEADER.copy(this.#buffer, 0);
    for (const item of items) {
      this.#rowStart = this.#at;
      this.#reserve(2);
      this.#at = this.#buffer.writeInt16BE(fields, this.#at);
      encode(item);
      if (this.#at >= CHUNK_BYTES / 2) {
        yield this.#buffer.subarray(0, this.#at);
        this.#at = 0;
      }
    }
    this.#reserve(TRAILER.length);
    this.#at += TRAILER.copy(this.#buffer, this.#at);
    yield this.#buffer.subarray(0, this.#at);
    // A large body has made the buffer large.
    if (this.#buffer.length > CHUNK_BYTES) this.#buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  }

  /** Bytes of the row so far. */
  get rowBytes(): number {
    return this.#at - this.#rowStart;
  }

  null(): void {
    this.#reserve(4);
    this.#at = this.#buffer.writeInt32BE(NULL, this.#at);
  }

  text(value: string): void {
    // A UTF-16 unit takes at most three bytes.
    this.#reserve(4 + value.length * 3);
    const bytes = this.#buffer.write(value, this.#at + 4, "utf8");
    this.#buffer.writeInt32BE(bytes, this.#at);
    this.#at += 4 + bytes;
  }

  bytes(value: Uint8Array): void {
    this.#reserve(4 + value.length);
    this.#at = this.#buffer.writeInt32BE(value.length, this.#at);
    this.#buffer.set(value, this.#at);
    this.#at += value.length;
  }

  boolean(value: boolean): void {
    this.#reserve(5);
    this.#at = this.#buffer.writeInt32BE(1, this.#at);
    this.#at = this.#buffer.writeInt8(value ? 1 : 0, this.#at);
  }

  int16(value: number): void {
    this.#reserve(6);
    this.#at = this.#buffer.writeInt32BE(2, this.#at);
    this.#at = this.#buffer.writeInt16BE(value, this.#at);
  }

  int32(value: number): void {
    this.#reserve(8);
    this.#at = this.#buffer.writeInt32BE(4, this.#at);
    this.#at = this.#buffer.writeInt32BE(value, this.#at);
  }

  /** An integer of 64 bits; `value` is a safe integer. Without a BigInt, which would be allocated. */
  int64(value: number): void {
    this.#reserve(12);
    this.#at = this.#buffer.writeInt32BE(8, this.#at);
    const high = Math.floor(value / 2 ** 32);
    this.#at = this.#buffer.writeInt32BE(high, this.#at);
    this.#at = this.#buffer.writeUInt32BE(value - high * 2 ** 32, this.#at);
  }

  float64(value: number): void {
    this.#reserve(12);
    this.#at = this.#buffer.writeInt32BE(8, this.#at);
    this.#at = this.#buffer.writeDoubleBE(value, this.#at);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

/**
 * Deliveries that wait to be listed: the newest `capacity`, as bytes.
 *
 * Bytes and not objects, because each waits for up to a second. Thousands of objects and bodies a second that outlive a collection of young
 * objects end up among the old ones, and collecting those took a tenth of all the time webhooks had. Most are never read again: at such a
 * rate newer ones replace them before they are written.
 *
 * Records are packed one after the other into slabs, oldest first, and dropped a slab at a time:
 *   length of the text (4 bytes) · length of the body, or NO_BODY (4) · the record without its body, JSON · the body
 */
import type { DeliveryRecord } from "./delivery-record.ts";

const SLAB_BYTES = 256 * 1024;
const HEAD_BYTES = 8;
const NO_BODY = 0xffff_ffff;
const MAX_BYTES_PER_CHARACTER = 3;
/** Bodies of all that wait; beyond it records wait without theirs. */
const MAX_WAITING_BODY_BYTES = 16 * 1024 * 1024;

interface Slab {
  readonly bytes: Buffer;
  used: number;
  count: number;
  bodyBytes: number;
}

export class WaitingDeliveries {
  readonly #capacity: number;
  /** Oldest first. */
  #slabs: Slab[] = [];
  #count = 0;
  #bodyBytes = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(record: DeliveryRecord): void {
    if (this.#capacity === 0) return;
    const { body } = record;
    const text = JSON.stringify({ ...record, body: null });
    const kept = body !== null && this.#bodyBytes + body.length <= MAX_WAITING_BODY_BYTES ? body : null;
    const room = HEAD_BYTES + text.length * MAX_BYTES_PER_CHARACTER + (kept?.length ?? 0);
    const slab = this.#slabWith(room);
    const { bytes } = slab;
    const start = slab.used + HEAD_BYTES;
    const textBytes = bytes.write(text, start);
    bytes.writeUInt32LE(textBytes, slab.used);
    bytes.writeUInt32LE(kept?.length ?? NO_BODY, slab.used + 4);
    slab.used = start + textBytes;
    slab.count += 1;
    this.#count += 1;
    if (kept === null) return;
    bytes.set(kept, slab.used);
    slab.used += kept.length;
    slab.bodyBytes += kept.length;
    this.#bodyBytes += kept.length;
  }

  /** Oldest first, at most `capacity`; none wait afterwards. Their bodies are good as long as anybody has them. */
  drain(): DeliveryRecord[] {
    const records = this.#slabs.flatMap(unpack).slice(-this.#capacity);
    this.#slabs = [];
    this.#count = 0;
    this.#bodyBytes = 0;
    return records;
  }

  #slabWith(room: number): Slab {
    const newest = this.#slabs.at(-1);
    if (newest !== undefined && newest.used + room <= newest.bytes.length) return newest;
    const slab = this.#dropOldest(room) ?? newSlab(Math.max(room, SLAB_BYTES));
    this.#slabs.push(slab);
    return slab;
  }

  /** The oldest slab, emptied, if the others hold as much as is wanted and it has the room. */
  #dropOldest(room: number): Slab | null {
    const [oldest] = this.#slabs;
    if (oldest === undefined || this.#count - oldest.count < this.#capacity) return null;
    this.#slabs.shift();
    this.#count -= oldest.count;
    this.#bodyBytes -= oldest.bodyBytes;
    if (oldest.bytes.length < room || oldest.bytes.length > SLAB_BYTES) return null;
    oldest.used = 0;
    oldest.count = 0;
    oldest.bodyBytes = 0;
    return oldest;
  }
}

function newSlab(size: number): Slab {
  return { bytes: Buffer.allocUnsafeSlow(size), used: 0, count: 0, bodyBytes: 0 };
}

function unpack({ bytes, used }: Slab): DeliveryRecord[] {
  const records: DeliveryRecord[] = [];
  for (let at = 0; at < used;) {
    const textEnd = at + HEAD_BYTES + bytes.readUInt32LE(at);
    const bodyBytes = bytes.readUInt32LE(at + 4);
    const record = JSON.parse(bytes.toString("utf8", at + HEAD_BYTES, textEnd)) as DeliveryRecord;
    at = textEnd + (bodyBytes === NO_BODY ? 0 : bodyBytes);
    records.push({ ...record, body: bodyBytes === NO_BODY ? null : bytes.subarray(textEnd, at) });
  }
  return records;
}

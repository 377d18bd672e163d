import fc from "fast-check";
import { zstdCompressSync } from "node:zlib";
import { expect, it } from "vitest";
import {
  eachPart,
  maxRawBytes,
  PART_BYTES,
  readRecord,
  readStored,
  writeEmptyRecord,
  writeRawRecord,
  writeStored,
} from "./record.ts";

const PAGE_BYTES = 512;

/** Frames as SQLite writes them; the last one of a transaction has the size of the database. */
function framesOf(pages: readonly { page: number; fill: number }[], databasePages: number): Buffer {
  return Buffer.concat(
    pages.map(({ page, fill }, i) => {
      const frame = Buffer.alloc(24 + PAGE_BYTES, fill);
      frame.writeUInt32BE(page, 0);
      frame.writeUInt32BE(i === pages.length - 1 ? databasePages : 0, 4);
      return frame;
    }),
  );
}

function toRawRecord(frames: Buffer): Buffer {
  const target = Buffer.alloc(maxRawBytes(frames.length));
  return target.subarray(0, writeRawRecord(frames, PAGE_BYTES, target));
}

const page = fc.record({ page: fc.integer({ min: 1, max: 20 }), fill: fc.integer({ min: 0, max: 255 }) });

it("a record has the last version of each page, and the size of the database", () => {
  fc.assert(
    fc.property(
      fc.array(page, { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 20 }),
      (pages, size) => {
        const record = readRecord(toRawRecord(framesOf(pages, size)));
        const last = new Map(pages.map((one) => [one.page, one.fill]));
        expect(record.pages.map((one) => [one.page, one.content[0]])).toEqual([...last]);
        expect([record.databasePages, record.pageBytes]).toEqual([size, PAGE_BYTES]);
      },
    ),
  );
});

it("stored bytes are read back, and any changed bit is noticed", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 6000 }),
      fc.boolean(),
      fc.nat(),
      fc.integer({ min: 0, max: 7 }),
      (bytes, isCompressed, at, bit) => {
        const target = Buffer.alloc(bytes.length + 20);
        const stored = target.subarray(
          7,
          7 + writeStored(Buffer.from(bytes), target, 7, isCompressed ? zstdCompressSync : null),
        );
        expect(readStored(stored).equals(bytes)).toBe(true);
        const damaged = Buffer.from(stored);
        const position = at % damaged.length;
        damaged.writeUInt8((damaged.readUInt8(position) ^ (1 << bit)) & 0xff, position);
        let read: Buffer | null = null;
        try {
          read = readStored(damaged);
        } catch {
          // Noticed.
        }
        // A bit that the compressed form does not use may change without changing the content.
        if (read !== null) expect(read.equals(bytes)).toBe(true);
      },
    ),
  );
});

it("bytes that are no record are refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const raw = Buffer.from(bytes);
      try {
        const record = readRecord(raw);
        expect(raw.length).toBe(12 + record.pages.length * (4 + record.pageBytes));
      } catch (error) {
        expect(String(error)).toMatch(/shorter than its head|wrong length/);
      }
    }),
  );
  const empty = Buffer.alloc(maxRawBytes(0));
  expect(writeEmptyRecord(1024, 7, empty)).toBe(empty.length);
  expect(readRecord(empty)).toEqual({ pageBytes: 1024, databasePages: 7, pages: [] });
});

it("the changed parts are those of the pages, and those that the database grows by", () => {
  const parts = (pages: number[], from: number, to: number) => {
    const found = new Set<number>();
    eachPart(pages, { from, to }, 1024, (part) => found.add(part));
    return [...found].toSorted((a, b) => a - b);
  };
  const perPart = PART_BYTES / 1024;
  expect(parts([1, perPart, perPart + 1], perPart + 1, perPart + 1)).toEqual([0, 1]);
  expect(parts([1], perPart - 1, perPart)).toEqual([0]);
  expect(parts([1], perPart, perPart + 1)).toEqual([0, 1]);
  expect(parts([], 1, 3 * perPart)).toEqual([0, 1, 2]);
  expect(parts([1], 3 * perPart, 10)).toEqual([0]);
});

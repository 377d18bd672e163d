import fc from "fast-check";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { expect, it } from "vitest";
import { COMPRESSION } from "./record.ts";
import { ZstdFrames } from "./zstd-frames.ts";

it("each value is a complete frame of its own, whatever was compressed before", () => {
  const frames = new ZstdFrames();
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 3000 }),
      fc.integer({ min: 1, max: 60 }),
      (bytes, times) => {
        const raw = Buffer.concat(Array.from({ length: times }, () => bytes));
        expect(zstdDecompressSync(frames.compress(raw)).equals(raw)).toBe(true);
      },
    ),
  );
});

it("every value is compressed alike, with the parameters of the first one", () => {
  const raw = Buffer.from(Array.from({ length: 3000 }, (_, i) => `${(i * 7919) % 1009},`).join(""));
  const frames = new ZstdFrames();
  const sizes = [1, 2, 3].map(() => frames.compress(raw).length);
  expect(new Set(sizes)).toEqual(new Set([zstdCompressSync(raw, COMPRESSION).length]));
  expect(zstdCompressSync(raw).length).not.toBe(sizes[0]);
});

it("the fast way works in this version of Node.js", () => {
  expect(new ZstdFrames().isFast).toBe(true);
});

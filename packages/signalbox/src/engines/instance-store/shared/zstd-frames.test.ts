import fc from "fast-check";
import { zstdDecompressSync } from "node:zlib";
import { expect, it } from "vitest";
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

it("the fast way works in this version of Node.js", () => {
  expect(new ZstdFrames().isFast).toBe(true);
});

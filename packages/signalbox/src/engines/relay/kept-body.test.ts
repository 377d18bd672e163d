import * as fc from "fast-check";
import { expect, it } from "vitest";
import { KeptBody, type SpareMemory } from "./kept-body.ts";

class Budget implements SpareMemory {
  readonly #maxBytes: number;
  usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  takeSpare(bytes: number): boolean {
    if (this.usedBytes + bytes > this.#maxBytes) return false;
    this.usedBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.usedBytes -= bytes;
  }
}

it("keeps the beginning up to its limit, however the body is split, and reports whether that is all of it", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 6000 }), { maxLength: 8 }),
      fc.nat({ max: 20_000 }),
      (pieces, maxBytes) => {
        const kept = new KeptBody(maxBytes, new Budget(1_000_000));
        pieces.forEach((piece, i) => kept.add(Buffer.from(piece), i === pieces.length - 1));
        const whole = Buffer.concat(pieces);
        expect(kept.isWhole).toBe(whole.length <= maxBytes);
        expect(kept.take().equals(whole.subarray(0, maxBytes))).toBe(true);
        expect(kept.take()).toHaveLength(0);
      },
    ),
  );
});

it("copies the chunks of an unfinished body, so that their memory can be freed", () => {
  const piece = Buffer.from("first");
  const kept = new KeptBody(100, new Budget(1_000_000));
  kept.add(piece, false);
  piece.fill("x");
  kept.add(Buffer.from(" second"), true);
  expect(kept.take().toString()).toBe("first second");
});

it("keeps less when the budget has no room, and gives its part back", () => {
  const budget = new Budget(10_000);
  const first = new KeptBody(100_000, budget);
  first.add(Buffer.alloc(6000, "a"), false);
  const second = new KeptBody(100_000, budget);
  second.add(Buffer.alloc(3000, "b"), false);
  expect(second.isWhole).toBe(false);
  second.add(Buffer.alloc(10, "c"), true);
  expect(second.take()).toHaveLength(0);
  first.add(Buffer.alloc(6000, "a"), true);
  expect(first.isWhole).toBe(false);
  expect(first.take()).toEqual(Buffer.alloc(6000, "a"));
  expect(budget.usedBytes).toBe(0);
});

import * as fc from "fast-check";
import { expect, it } from "vitest";
import { MemoryBudget } from "../http-server/index.ts";
import { KeptBody } from "./kept-body.ts";

it("keeps the beginning up to its limit, however the body comes, and says whether that is all", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 6000 }), { maxLength: 8 }),
      fc.nat({ max: 20_000 }),
      (pieces, maxBytes) => {
        const kept = new KeptBody(maxBytes, new MemoryBudget({ maxBytes: 1_000_000, stallMs: 1000 }));
        pieces.forEach((piece, i) => kept.add(Buffer.from(piece), i === pieces.length - 1));
        const whole = Buffer.concat(pieces);
        expect(kept.isWhole).toBe(whole.length <= maxBytes);
        expect(kept.take().equals(whole.subarray(0, maxBytes))).toBe(true);
        expect(kept.take()).toHaveLength(0);
      },
    ),
  );
});

it("copies pieces of a body that is not over, so that their memory can go", () => {
  const piece = Buffer.from("first");
  const kept = new KeptBody(100, new MemoryBudget({ maxBytes: 1_000_000, stallMs: 1000 }));
  kept.add(piece, false);
  piece.fill("x");
  kept.add(Buffer.from(" second"), true);
  expect(kept.take().toString()).toBe("first second");
});

it("keeps less when the budget has no room, gives its part back, and leaves half of it to requests", () => {
  const budget = new MemoryBudget({ maxBytes: 20_000, stallMs: 1000 });
  const first = new KeptBody(100_000, budget);
  first.add(Buffer.alloc(6000, "a"), false);
  const second = new KeptBody(100_000, budget);
  second.add(Buffer.alloc(3000, "b"), false);
  expect(second.isWhole).toBe(false);
  second.add(Buffer.alloc(10, "c"), true);
  expect(second.take()).toHaveLength(0);
  first.add(Buffer.alloc(6000, "a"), true);
  expect(first.isWhole).toBe(false);
  expect(budget.take(10_000)).toBe(true);
  budget.release(10_000);
  expect(first.take()).toEqual(Buffer.alloc(6000, "a"));
  expect(budget.used).toBe(0);
});

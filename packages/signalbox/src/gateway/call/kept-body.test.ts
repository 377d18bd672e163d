import * as fc from "fast-check";
import { expect, it } from "vitest";
import { KeptBody } from "./kept-body.ts";

it("keeps the beginning up to its limit, however the body comes, and says whether that is all", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 6000 }), { maxLength: 8 }),
      fc.nat({ max: 20_000 }),
      (pieces, maxBytes) => {
        const kept = new KeptBody(maxBytes);
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
  const kept = new KeptBody(100);
  kept.add(piece, false);
  piece.fill("x");
  kept.add(Buffer.from(" second"), true);
  expect(kept.take().toString()).toBe("first second");
});

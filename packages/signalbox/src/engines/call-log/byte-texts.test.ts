import fc from "fast-check";
import { expect, it } from "vitest";
import { ByteTexts } from "./byte-texts.ts";

it("numbers texts in the order of their first appearance, however many there are", () => {
  const text = fc.oneof(fc.nat(3000).map(String), fc.string({ unit: "binary", maxLength: 40 }));
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4000, size: "max" }), (list) => {
      const texts = new ByteTexts();
      const numbers = new Map<string, number>();
      const wellFormed = list.map((value) => value.toWellFormed().replaceAll("\n", ""));
      for (const one of wellFormed) {
        if (!numbers.has(one)) numbers.set(one, numbers.size);
        expect(texts.numberOf(one)).toBe(numbers.get(one));
      }
      const all = new Int32Array(wellFormed.length);
      texts.numberAll(Buffer.from(wellFormed.join("\n")), 10, all.length, all);
      expect([...all]).toEqual(wellFormed.map((one) => numbers.get(one)));
      expect(texts.size).toBe(numbers.size);
      for (const [one, number] of numbers) expect(texts.text(number)).toBe(one);
    }),
    { numRuns: 10 },
  );
});

import fc from "fast-check";
import { expect, it } from "vitest";
import { inspectBody, scanTopLevel } from "./inspect-body.ts";

const WANTED = ["model", "max_tokens", "max_completion_tokens", "max_output_tokens"];

it("finds by scanning what parsing finds, whatever stands around it", () => {
  const value = fc.oneof(fc.string(), fc.boolean(), fc.integer(), fc.constant(null));
  const key = fc.oneof(fc.constantFrom(...WANTED), fc.string());
  const object = fc.dictionary(key, fc.oneof(value, fc.array(value), fc.dictionary(key, value)));
  fc.assert(
    fc.property(object, fc.constantFrom(0, 2), (fields, indent) => {
      const bytes = Buffer.from(JSON.stringify(fields, null, indent));
      const scanned = scanTopLevel(bytes);
      for (const name of WANTED) {
        const found = Object.hasOwn(fields, name) ? fields[name] : undefined;
        const expected = typeof found === "object" && found !== null ? undefined : found;
        expect(scanned[name]).toEqual(expected);
      }
    }),
  );
});

it("never throws on bytes that are no JSON", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      scanTopLevel(Buffer.from(bytes));
      inspectBody(Buffer.from(bytes), false);
    }),
  );
});

it("reads the model and the output limit", () => {
  const facts = inspectBody(Buffer.from('{"model":"m","stream":true,"max_tokens":5}'), true);
  expect(facts).toEqual({ model: "m", maxOutputTokens: 5 });
});

import * as fc from "fast-check";
import { expect, it } from "vitest";
import { callRecord } from "../../contract/call-log-contract.ts";
import type { CallRecord } from "../../ports/call-log.ts";
import { decodeBatch, encodeBatch } from "./row-batch.ts";

const count = fc.nat();
const textOrNull = fc.option(fc.string({ unit: "grapheme" }), { nil: null });
const body = fc.option(fc.uint8Array({ maxLength: 30 }), { nil: null });

const record: fc.Arbitrary<CallRecord> = fc
  .record({
    accountId: fc.string(),
    gatewayId: fc.string(),
    model: fc.string({ unit: "grapheme" }),
    statusCode: count,
    success: fc.boolean(),
    durationMs: fc.double({ min: 0, noNaN: true }),
    firstByteMs: fc.option(count, { nil: null }),
    cached: fc.boolean(),
    usage: fc.record({
      tokensIn: count,
      tokensOut: count,
      tokensInCached: count,
      tokensInCacheWrite: count,
      tokensOutReasoning: count,
    }),
    cost: fc.option(fc.double({ min: 0, noNaN: true }), { nil: null }),
    isCustomCost: fc.boolean(),
    metadata: textOrNull,
    eventId: textOrNull,
    tokenId: textOrNull,
    requestBody: body,
    responseBody: body,
    requestBodyComplete: fc.boolean(),
    responseBodyComplete: fc.boolean(),
  })
  .map((fields) => callRecord(fields));

it("decodes to the records that were encoded", () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 5 }), (records) => {
      expect(decodeBatch(structuredClone(encodeBatch(records)))).toEqual(records);
    }),
  );
});

it("copies bodies, so that the caller's memory stays usable", () => {
  const bytes = Buffer.from("still mine");
  const batch = encodeBatch([callRecord({ requestBody: bytes })]);
  structuredClone(batch, { transfer: [batch.bodies.buffer] });
  expect(bytes.toString()).toBe("still mine");
});

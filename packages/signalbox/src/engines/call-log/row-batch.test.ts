import * as fc from "fast-check";
import { expect, it } from "vitest";
import { callRecord } from "./call-log-contract.ts";
import type { CallRecord } from "./call-log.ts";
import { packedBytes, RowPacker, unpackBatch } from "./row-batch.ts";

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

function packerFor(records: readonly CallRecord[]): RowPacker {
  const bytes = records.reduce((sum, call) => sum + packedBytes(call), 0);
  return new RowPacker(new SharedArrayBuffer(Math.ceil(bytes / 8) * 8));
}

function unpackTaken(packer: RowPacker): CallRecord[] {
  const batch = packer.takeBatch();
  return batch === null ? [] : [...unpackBatch(structuredClone(batch))];
}

it("unpacks to the records that were packed, batch by batch", () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 5 }), fc.nat({ max: 5 }), (records, split) => {
      const packer = packerFor(records);
      for (const call of records.slice(0, split)) packer.add(call);
      expect(unpackTaken(packer)).toEqual(records.slice(0, split));
      for (const call of records.slice(split)) packer.add(call);
      expect(unpackTaken(packer)).toEqual(records.slice(split));
    }),
  );
});

it("has room for what fits exactly, and for nothing more", () => {
  const call = callRecord({ requestBody: Buffer.from("12345678"), responseBody: null });
  const packer = packerFor([call]);
  expect(packer.hasRoomFor(call)).toBe(true);
  packer.add(call);
  expect(packer.hasRoomFor(callRecord({ requestBody: null, responseBody: null }))).toBe(false);
});

it("copies bodies, so that the caller's memory stays its own", () => {
  const bytes = Buffer.from("as it was");
  const call = callRecord({ requestBody: bytes });
  const packer = packerFor([call]);
  packer.add(call);
  bytes.fill("x");
  const [unpacked] = unpackTaken(packer);
  expect(Buffer.from(unpacked?.requestBody ?? []).toString()).toBe("as it was");
});

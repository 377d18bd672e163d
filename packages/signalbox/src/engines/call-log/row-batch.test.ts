import * as fc from "fast-check";
import { expect, it } from "vitest";
import { callRecord } from "./call-log-fixture.ts";
import type { CallRecord } from "./call-log.ts";
import type { RecordColumn } from "./columns.ts";
import { packedRows } from "./packed-row.ts";
import { packedBytes, RECORD_COLUMNS, RowPacker } from "./row-batch.ts";

const body = fc.option(fc.uint8Array({ maxLength: 30 }), { nil: null });

/** Any value of any column: a new column is tested without a change here. */
const record = fc
  .record({
    accountId: fc.string(),
    gatewayId: fc.string(),
    requestBody: body,
    responseBody: body,
    ...Object.fromEntries(
      RECORD_COLUMNS.filter(({ kind }) => kind !== "id").map(({ name, kind, nullable }) => {
        const value = {
          text: fc.string({ unit: "grapheme", maxLength: 20 }),
          json: fc.json({ maxDepth: 1 }),
          integer: fc.nat(),
          time: fc.nat(),
          real: fc.double({ min: 0, noNaN: true }),
          ms: fc.nat().map((hundredths) => hundredths / 100),
          flag: fc.boolean(),
          id: fc.constant(""),
        }[kind];
        return [name, nullable ? fc.option<unknown>(value, { nil: null }) : value];
      }),
    ),
  })
  .map((fields) => callRecord(fields as Partial<CallRecord>));

interface Unpacked {
  readonly accountId: string;
  readonly gatewayId: string;
  readonly values: readonly unknown[];
  readonly bodies: readonly (Uint8Array | null)[];
}

/** What the writer must read. */
function expected(call: CallRecord): Unpacked {
  const { accountId, gatewayId, requestBody, responseBody } = call;
  const values = RECORD_COLUMNS.map(({ name, kind }) => {
    const value = call[name as RecordColumn];
    return kind === "flag" ? Number(value) : value;
  });
  return { accountId, gatewayId, values, bodies: [requestBody, responseBody] };
}

function packerFor(records: readonly CallRecord[]): RowPacker {
  const bytes = records.reduce((sum, call) => sum + packedBytes(call), 0);
  return new RowPacker(new SharedArrayBuffer(Math.ceil(bytes / 8) * 8));
}

function unpackTaken(packer: RowPacker): Unpacked[] {
  const batch = packer.takeBatch();
  if (batch === null) return [];
  return Array.from(packedRows([structuredClone(batch)]), (row) => ({
    accountId: row.accountId,
    gatewayId: row.gatewayId,
    values: [...row.values],
    bodies: [row.requestBody, row.responseBody],
  }));
}

it("reads the records that were packed, batch by batch", () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 5 }), fc.nat({ max: 5 }), (records, split) => {
      const packer = packerFor(records);
      for (const call of records.slice(0, split)) packer.add(call);
      expect(unpackTaken(packer)).toEqual(records.slice(0, split).map(expected));
      for (const call of records.slice(split)) packer.add(call);
      expect(unpackTaken(packer)).toEqual(records.slice(split).map(expected));
    }),
  );
});

it("has room for a call that fits exactly, and for no more", () => {
  const call = callRecord({ requestBody: Buffer.from("12345678"), responseBody: null });
  const packer = packerFor([call]);
  expect(packer.hasRoomFor(call)).toBe(true);
  packer.add(call);
  expect(packer.hasRoomFor(callRecord({ requestBody: null, responseBody: null }))).toBe(false);
});

it("copies bodies: the caller may change its memory afterwards", () => {
  const bytes = Buffer.from("as it was");
  const call = callRecord({ requestBody: bytes });
  const packer = packerFor([call]);
  packer.add(call);
  bytes.fill("x");
  const [unpacked] = unpackTaken(packer);
  expect(Buffer.from(unpacked?.bodies[0] ?? []).toString()).toBe("as it was");
});

/** The fields of a call and of a body in the binary format of COPY. */
import type { SqlValue } from "../../../core/sql.ts";
import type { Column } from "../columns.ts";
import type { PackedRow } from "../packed-row.ts";
import { RECORD_COLUMNS } from "../row-batch.ts";
import type { BodyBytes } from "../stored-body.ts";
import type { BinaryRows } from "./binary-copy.ts";
import { storableInteger, storableJson, storableText } from "./storable.ts";

const BODY_COLUMNS = ["gateway", "counted", "has_request_body", "has_response_body"];
const NAMES = [...BODY_COLUMNS, ...RECORD_COLUMNS.map(({ sqlName }) => sqlName)];

export const COPY_CALLS = `COPY call_log (${NAMES.join(", ")}) FROM STDIN (FORMAT binary)`;
export const CALL_FIELDS = NAMES.length;
export const COPY_BODIES = "COPY call_log_body (id, side, is_zstd, bytes) FROM STDIN (FORMAT binary)";
export const BODY_FIELDS = 4;

const INDEX_OF = Object.fromEntries(RECORD_COLUMNS.map(({ name }, i) => [name, i]));
const REQUEST_BODY_COMPLETE = INDEX_OF["requestBodyComplete"] ?? 0;
const RESPONSE_BODY_COMPLETE = INDEX_OF["responseBodyComplete"] ?? 0;

/** What a column accepts. */
const STORABLE: Readonly<Record<Column["kind"], (value: SqlValue) => SqlValue>> = {
  id: (value) => value,
  text: (value) => storableText(value as string),
  json: (value) => storableJson(value as string),
  integer: (value) => storableInteger(value as number),
  time: (value) => storableInteger(value as number),
  flag: (value) => value,
  real: (value) => value,
  ms: (value) => value,
};
const ENCODE: Readonly<Record<Column["kind"], (rows: BinaryRows, value: SqlValue) => void>> = {
  id: (rows, value) => rows.text(value as string),
  text: (rows, value) => rows.text(value as string),
  json: (rows, value) => rows.text(value as string),
  integer: (rows, value) => rows.int64(value as number),
  time: (rows, value) => rows.int64(value as number),
  flag: (rows, value) => rows.int16(value as number),
  real: (rows, value) => rows.float64(value as number),
  ms: (rows, value) => rows.float64(value as number),
};
const PLAN = RECORD_COLUMNS.map(({ kind }) => ({ toStorable: STORABLE[kind], encode: ENCODE[kind] }));

/** Replaces what PostgreSQL would refuse, and marks bodies that are cut. */
export function makeStorable({ values, requestBody, responseBody }: PackedRow, maxBodyBytes: number): void {
  for (const [i, { toStorable }] of PLAN.entries()) {
    const value = values[i] ?? null;
    if (value !== null) values[i] = toStorable(value);
  }
  if (requestBody !== null && requestBody.length > maxBodyBytes) values[REQUEST_BODY_COMPLETE] = 0;
  if (responseBody !== null && responseBody.length > maxBodyBytes) values[RESPONSE_BODY_COMPLETE] = 0;
}

/** `isCounted`: the call becomes part of the totals. */
export function encodeCall(rows: BinaryRows, gateway: number, call: PackedRow, isCounted: boolean): void {
  rows.int32(gateway);
  rows.int16(isCounted ? 1 : 0);
  rows.int16(call.requestBody === null ? 0 : 1);
  rows.int16(call.responseBody === null ? 0 : 1);
  for (const [i, { encode }] of PLAN.entries()) {
    const value = call.values[i] ?? null;
    if (value === null) rows.null();
    else encode(rows, value);
  }
}

export function encodeBody(rows: BinaryRows, id: string, side: 0 | 1, { bytes, isZstd }: BodyBytes): void {
  rows.text(id);
  rows.int16(side);
  rows.boolean(isZstd);
  rows.bytes(bytes);
}

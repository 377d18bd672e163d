/**
 * Reads packed rows in the writer's thread, as the values that are stored: texts cut to their limits, times rounded, invalid JSON as null.
 *
 * One object and one array serve all rows, so that a row leaves only its texts on the heap.
 */
import type { SqlValue } from "../../core/sql.ts";
import type { GatewayRef } from "./call-log.ts";
import type { CountedCall, CountedText } from "./batch-usage.ts";
import type { NumberColumn, RecordColumn } from "./columns.ts";
import {
  FIRST_BODY_SLOT,
  ID_BYTES,
  ID_SLOT,
  NONE,
  RECORD_COLUMNS,
  type RowBatch,
  SLOTS_PER_ROW,
} from "./row-batch.ts";

const INDEXES = Object.fromEntries(RECORD_COLUMNS.map(({ name }, i) => [name, i])) as Readonly<
  Record<RecordColumn, number>
>;
const ID_INDEX = INDEXES.id;
const UNLIMITED = Number.MAX_SAFE_INTEGER;

const TEXTS = RECORD_COLUMNS.flatMap(({ kind, slot, name, maxLength = UNLIMITED, nullable = false }) =>
  kind === "text" || kind === "json"
    ? [{ slot, index: INDEXES[name as RecordColumn], maxLength, isJson: kind === "json", nullable }]
    : [],
);
const NUMBERS = RECORD_COLUMNS.flatMap(({ kind, slot, name, nullable = false }) =>
  kind === "text" || kind === "json" || kind === "id"
    ? []
    : [{ slot, index: INDEXES[name as RecordColumn], isMs: kind === "ms", nullable }],
);

export class PackedRow implements GatewayRef, CountedCall {
  accountId = "";
  gatewayId = "";
  id = "";
  requestBody: Uint8Array | null = null;
  responseBody: Uint8Array | null = null;
  /** In the order of `RECORD_COLUMNS`. */
  readonly values: SqlValue[] = RECORD_COLUMNS.map(() => null);

  number(name: NumberColumn): number {
    return (this.values[INDEXES[name]] ?? 0) as number;
  }

  text(name: CountedText): string | null {
    return this.values[INDEXES[name]] as string | null;
  }

  /** The id and the gateway only. */
  loadHead(numbers: Float64Array, bytes: Buffer, texts: readonly string[], row: number): void {
    const at = row * SLOTS_PER_ROW;
    const idAt = (at + ID_SLOT) * 8;
    this.id = bytes.toString("latin1", idAt, idAt + ID_BYTES);
    this.accountId = texts[numbers[at] ?? 0] ?? "";
    this.gatewayId = texts[numbers[at + 1] ?? 0] ?? "";
  }

  load(numbers: Float64Array, bytes: Buffer, texts: readonly string[], row: number): void {
    this.loadHead(numbers, bytes, texts, row);
    const at = row * SLOTS_PER_ROW;
    const { values } = this;
    values[ID_INDEX] = this.id;
    for (const { slot, index, maxLength, isJson, nullable } of TEXTS) {
      const text = texts[numbers[at + slot] ?? NONE] ?? null;
      if (text === null || (isJson && !isValidJson(text))) values[index] = nullable ? null : "";
      else values[index] = text.length > maxLength ? text.slice(0, maxLength) : text;
    }
    for (const { slot, index, isMs, nullable } of NUMBERS) {
      const number = numbers[at + slot] ?? NONE;
      if (Number.isNaN(number)) values[index] = nullable ? null : 0;
      else values[index] = isMs ? Math.round(number * 100) / 100 : number;
    }
    this.requestBody = bodyAt(numbers, at + FIRST_BODY_SLOT);
    this.responseBody = bodyAt(numbers, at + FIRST_BODY_SLOT + 2);
  }
}

/** The rows of some batches. Every iteration yields the same object; its bodies are views of the shared memory. */
export function packedRows(batches: readonly RowBatch[]): Generator<PackedRow, void> {
  return loadEach(batches, "load");
}

/** The same rows with their ids and gateways only. */
export function packedHeads(batches: readonly RowBatch[]): Generator<PackedRow, void> {
  return loadEach(batches, "loadHead");
}

function* loadEach(batches: readonly RowBatch[], load: "load" | "loadHead"): Generator<PackedRow, void> {
  const packed = new PackedRow();
  for (const { memory, firstRow, rows, texts } of batches) {
    const numbers = new Float64Array(memory, 0, Math.floor(memory.byteLength / 8));
    const bytes = Buffer.from(memory);
    for (let row = firstRow; row < firstRow + rows; row++) {
      packed[load](numbers, bytes, texts, row);
      yield packed;
    }
  }
}

function bodyAt(numbers: Float64Array, slot: number): Uint8Array | null {
  const length = numbers[slot] ?? NONE;
  if (Number.isNaN(length)) return null;
  return length === 0 ? new Uint8Array(0) : new Uint8Array(numbers.buffer, numbers[slot + 1], length);
}

function isValidJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

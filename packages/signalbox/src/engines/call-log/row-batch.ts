/**
 * Finished calls on their way to the writer's thread, packed into memory that both threads share. README.md says why ("On the heap").
 *
 *   memory:  row │ row │ row │ →        free        ← │ body │ body │ body
 *
 * A row is a fixed number of 8-byte slots. A text is stored as its index in a list that is sent with the batch, because most texts repeat from
 * call to call. Bodies are copied: the caller's memory may be a view of a shared pool, or still be in use for the response cache.
 */
import type { CallRecord } from "./call-log.ts";
import { CALL_COLUMNS, listColumns, type RecordColumn } from "./columns.ts";

/** A row that does not fit into a shared piece has an `ArrayBuffer` of its own, which can be freed without waiting for a garbage collection. */
export type RowMemory = SharedArrayBuffer | ArrayBuffer;

/** Consecutive rows of one piece of memory. */
export interface RowBatch {
  readonly memory: RowMemory;
  readonly firstRow: number;
  readonly rows: number;
  readonly texts: readonly string[];
}

type NamesOf<Value> = {
  [Name in RecordColumn]: CallRecord[Name] extends Value ? Name : never;
}[RecordColumn];

interface PlacedColumn<Name> {
  readonly name: Name;
  readonly slot: number;
}

export const ID_BYTES = 26;
const ID_SLOTS = Math.ceil(ID_BYTES / 8);
/** Slots 0 and 1: the account and the gateway. */
const FIRST_COLUMN_SLOT = 2;
/** Length and offset of each body, behind the columns. */
const BODY_SLOTS = 4;
/** Stands for null. */
export const NONE = Number.NaN;

/** The columns that a record supplies, each with its slot; also the order in which they are inserted. */
export const RECORD_COLUMNS = layOut();
const LAST = RECORD_COLUMNS.at(-1);
export const FIRST_BODY_SLOT = LAST === undefined ? FIRST_COLUMN_SLOT : LAST.slot + slotsOf(LAST.kind);
export const SLOTS_PER_ROW = FIRST_BODY_SLOT + BODY_SLOTS;
const ROW_BYTES = SLOTS_PER_ROW * 8;

// One loop per kind: every loop then has one type of value, and no branch for the others.
const TEXTS = columnsOf<NamesOf<string | null>>("text", "json");
const NUMBERS = columnsOf<NamesOf<number | null>>("integer", "time", "real", "ms");
const FLAGS = columnsOf<NamesOf<boolean>>("flag");
/** The id is the first column. */
export const ID_SLOT = FIRST_COLUMN_SLOT;

function layOut() {
  let slot = FIRST_COLUMN_SLOT;
  return listColumns(CALL_COLUMNS)
    .filter(({ from }) => from === undefined)
    .map((column) => {
      const placed = { ...column, slot };
      slot += slotsOf(column.kind);
      return placed;
    });
}

function slotsOf(kind: string): number {
  return kind === "id" ? ID_SLOTS : 1;
}

function columnsOf<Name extends RecordColumn>(...kinds: string[]): PlacedColumn<Name>[] {
  return RECORD_COLUMNS.filter(({ kind }) => kinds.includes(kind)).map(({ name, slot }) => ({
    name: name as Name,
    slot,
  }));
}

/** Frees memory that is not shared; views of it are empty from then on. */
export function releaseMemory(memory: RowMemory): void {
  if (memory instanceof ArrayBuffer) memory.transfer(0);
}

/** Memory that a call takes, without its texts. */
export function packedBytes(call: CallRecord): number {
  return ROW_BYTES + bodyBytesOf(call);
}

export function bodyBytesOf(call: CallRecord): number {
  return (call.requestBody?.length ?? 0) + (call.responseBody?.length ?? 0);
}

/** Packs calls into one piece of memory until it is full. */
export class RowPacker {
  readonly memory: RowMemory;
  readonly #numbers: Float64Array;
  readonly #bytes: Buffer;
  #rows = 0;
  #bodiesStart: number;
  #firstOfBatch = 0;
  #texts: string[] = [];
  #textIndexes = new Map<string, number>();

  constructor(memory: RowMemory) {
    this.memory = memory;
    this.#numbers = new Float64Array(memory, 0, Math.floor(memory.byteLength / 8));
    this.#bytes = Buffer.from(memory);
    this.#bodiesStart = memory.byteLength;
  }

  hasRoomFor(call: CallRecord): boolean {
    return this.#bodiesStart - this.#rows * ROW_BYTES >= packedBytes(call);
  }

  add(call: CallRecord): void {
    const numbers = this.#numbers;
    const row = this.#rows * SLOTS_PER_ROW;
    this.#bytes.write(call.id, (row + ID_SLOT) * 8, ID_BYTES, "latin1");
    numbers[row] = this.#textIndex(call.accountId);
    numbers[row + 1] = this.#textIndex(call.gatewayId);
    for (const { name, slot } of TEXTS) {
      const text = call[name];
      numbers[row + slot] = text === null ? NONE : this.#textIndex(text);
    }
    for (const { name, slot } of NUMBERS) numbers[row + slot] = call[name] ?? NONE;
    for (const { name, slot } of FLAGS) numbers[row + slot] = call[name] ? 1 : 0;
    this.#addBody(row + FIRST_BODY_SLOT, call.requestBody);
    this.#addBody(row + FIRST_BODY_SLOT + 2, call.responseBody);
    this.#rows += 1;
  }

  /** The rows since the last batch; null if there are none. */
  takeBatch(): RowBatch | null {
    const firstRow = this.#firstOfBatch;
    if (firstRow === this.#rows) return null;
    const batch = { memory: this.memory, firstRow, rows: this.#rows - firstRow, texts: this.#texts };
    this.#firstOfBatch = this.#rows;
    this.#texts = [];
    this.#textIndexes = new Map();
    return batch;
  }

  /** Makes the memory free again; every batch of it must be committed. */
  clear(): void {
    this.#rows = 0;
    this.#firstOfBatch = 0;
    this.#bodiesStart = this.memory.byteLength;
  }

  #textIndex(text: string): number {
    return this.#textIndexes.get(text) ?? this.#addText(text);
  }

  #addText(text: string): number {
    const index = this.#texts.length;
    this.#texts.push(text);
    this.#textIndexes.set(text, index);
    return index;
  }

  #addBody(slot: number, bytes: Uint8Array | null): void {
    this.#numbers[slot] = bytes?.length ?? NONE;
    if (bytes === null || bytes.length === 0) return;
    const end = this.#bodiesStart;
    this.#bodiesStart = end - bytes.length;
    this.#numbers[slot + 1] = this.#bodiesStart;
    // `fill` with the bytes as the pattern is a plain copy. `set` and `copy` into shared memory are twelve times slower (decision 0050).
    this.#bytes.fill(bytes, this.#bodiesStart, end);
  }
}

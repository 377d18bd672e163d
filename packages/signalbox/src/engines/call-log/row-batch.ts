/**
 * Finished calls on their way to the writer's thread, packed into memory that both threads share. The reason is in README.md ("On the heap").
 *
 *   memory:  row │ row │ row │ →        free        ← │ body │ body │ body
 *
 * A row is a fixed number of 8-byte slots. A text is stored as its index in a list that is sent with the batch, because most texts repeat from
 * call to call. Bodies are copied: the caller's memory may be a view of a shared pool, or still be in use for the response cache.
 * See docs/decisions/0050.
 */
import type { CallRecord } from "./call-log.ts";
import { CALL_COLUMNS, type Column, listColumns } from "./columns.ts";

/** A row that does not fit into a shared piece has an `ArrayBuffer` of its own, which can be freed without waiting for a garbage collection. */
export type RowMemory = SharedArrayBuffer | ArrayBuffer;

/** Consecutive rows of one piece of memory. */
export interface RowBatch {
  readonly memory: RowMemory;
  readonly firstRow: number;
  readonly rows: number;
  readonly texts: readonly string[];
}

/** How one property of a record is packed. A body takes two slots, its length and its offset. */
interface PackedProperty {
  readonly name: string;
  readonly kind: "id" | "text" | "number" | "flag" | "body";
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

/** The id is the first column. */
export const ID_SLOT = FIRST_COLUMN_SLOT;

const PROPERTIES = new Map<string, PackedProperty>(
  [
    { name: "accountId", kind: "text", slot: 0 } as const,
    { name: "gatewayId", kind: "text", slot: 1 } as const,
    ...RECORD_COLUMNS.map(({ name, kind, slot }) => ({ name, kind: packedKind(kind), slot })),
    { name: "requestBody", kind: "body", slot: FIRST_BODY_SLOT } as const,
    { name: "responseBody", kind: "body", slot: FIRST_BODY_SLOT + 2 } as const,
  ].map((property) => [property.name, property]),
);

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

function packedKind(kind: Column["kind"]): PackedProperty["kind"] {
  if (kind === "id" || kind === "flag") return kind;
  return kind === "text" || kind === "json" ? "text" : "number";
}

/** The properties in the order in which the record has them. */
function planFor(call: CallRecord): PackedProperty[] {
  const plan = Object.keys(call).flatMap((name) => PROPERTIES.get(name) ?? []);
  if (plan.length !== PROPERTIES.size || plan.length !== Object.keys(call).length) {
    throw new TypeError(`a call must have exactly the properties ${[...PROPERTIES.keys()].join(", ")}`);
  }
  return plan;
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
  #plan: readonly PackedProperty[] = [];
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
    const bodiesStart = this.#bodiesStart;
    if (!this.#pack(call)) {
      this.#plan = planFor(call);
      this.#bodiesStart = bodiesStart;
      this.#pack(call);
    }
    this.#rows += 1;
  }

  /**
   * False if the record has its properties in another order than the plan.
   *
   * V8 reads the properties of a `for`-`in` loop by their place in the object. A loop over the names of the columns would look up every property
   * by its name, which is slower (README.md, "Properties by place").
   */
  #pack(call: CallRecord): boolean {
    const plan = this.#plan;
    const numbers = this.#numbers;
    const row = this.#rows * SLOTS_PER_ROW;
    let i = 0;
    for (const name in call) {
      const property = plan[i++];
      if (property?.name !== name) return false;
      const value = call[name as keyof CallRecord];
      const at = row + property.slot;
      const { kind } = property;
      if (kind === "text") numbers[at] = value === null ? NONE : this.#textIndex(value as string);
      else if (kind === "number") numbers[at] = (value as number | null) ?? NONE;
      else if (kind === "flag") numbers[at] = value === true ? 1 : 0;
      else if (kind === "body") this.#packBody(at, value as Uint8Array | null);
      else this.#bytes.write(value as string, at * 8, ID_BYTES, "latin1");
    }
    return i === plan.length;
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

  #packBody(slot: number, bytes: Uint8Array | null): void {
    this.#numbers[slot] = bytes?.length ?? NONE;
    if (bytes === null || bytes.length === 0) return;
    const end = this.#bodiesStart;
    this.#bodiesStart = end - bytes.length;
    this.#numbers[slot + 1] = this.#bodiesStart;
    // `fill` with the bytes as the pattern is a plain copy. `set` and `copy` into shared memory are twelve times slower (decision 0050).
    this.#bytes.fill(bytes, this.#bodiesStart, end);
  }
}

/**
 * Finished calls on their way to the writer's thread, packed into memory that both threads see.
 *
 * A call is packed the moment it is recorded: as a record of thirty fields and two bodies it would live until its commit, long enough
 * for the garbage collector to copy it twice and then to look for it among the old objects; that cost a sixth of a call. Packed, nothing
 * of it is left on the heap.
 *
 *   memory:  row │ row │ row │ →        free        ← │ body │ body │ body
 *
 * A row is numbers and its id. Its texts are numbers too, places in a list that goes with the batch, since most repeat from call to
 * call. Bodies are copied, never taken: the caller's memory may be a view of a shared pool, or still be in use for the response cache.
 */
import type { CallRecord } from "./call-log.ts";

/** Shared, or for a single large row memory of its own that is copied over: that is given back at once, not when it is collected. */
export type RowMemory = SharedArrayBuffer | ArrayBuffer;

/** Rows of one piece of memory that were handed over together. */
export interface RowBatch {
  readonly memory: RowMemory;
  readonly firstRow: number;
  readonly rows: number;
  readonly texts: readonly string[];
}

const NUMBERS_PER_ROW = 33;
const ID_BYTES = 26;
/** The id takes four numbers' room. */
const SLOTS_PER_ROW = NUMBERS_PER_ROW + 4;
const ROW_BYTES = SLOTS_PER_ROW * 8;
const ID_AT = NUMBERS_PER_ROW * 8;
/** Stands for null among the numbers and for "no text" among the places in the list. */
const NONE = Number.NaN;

/** Gives memory that is not shared back; views of it are empty from then on. */
export function releaseMemory(memory: RowMemory): void {
  if (memory instanceof ArrayBuffer) memory.transfer(0);
}

/** Memory that a call takes, its texts aside. */
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
  #places = new Map<string, number>();

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
    const { usage } = call;
    const numbers = this.#numbers;
    let at = this.#rows * SLOTS_PER_ROW;
    this.#bytes.write(call.id, at * 8 + ID_AT, ID_BYTES, "latin1");
    numbers[at++] = this.#text(call.accountId);
    numbers[at++] = this.#text(call.gatewayId);
    numbers[at++] = call.createdAt;
    numbers[at++] = this.#text(call.provider);
    numbers[at++] = this.#text(call.model);
    numbers[at++] = this.#text(call.path);
    numbers[at++] = this.#text(call.method);
    numbers[at++] = this.#text(call.requestType);
    numbers[at++] = this.#text(call.requestContentType);
    numbers[at++] = this.#text(call.responseContentType);
    numbers[at++] = call.statusCode;
    numbers[at++] = call.success ? 1 : 0;
    numbers[at++] = call.durationMs;
    numbers[at++] = call.firstByteMs ?? NONE;
    numbers[at++] = call.cached ? 1 : 0;
    numbers[at++] = call.step;
    numbers[at++] = usage.tokensIn;
    numbers[at++] = usage.tokensOut;
    numbers[at++] = usage.tokensInCached;
    numbers[at++] = usage.tokensInCacheWrite;
    numbers[at++] = usage.tokensOutReasoning;
    numbers[at++] = call.cost ?? NONE;
    numbers[at++] = call.metadata === null ? NONE : this.#text(call.metadata);
    numbers[at++] = call.eventId === null ? NONE : this.#text(call.eventId);
    numbers[at++] = this.#text(call.userAgent);
    numbers[at++] = call.tokenId === null ? NONE : this.#text(call.tokenId);
    numbers[at++] = call.requestBytes;
    numbers[at++] = call.responseBytes;
    numbers[at++] = call.requestBody?.length ?? NONE;
    numbers[at++] = this.#body(call.requestBody);
    numbers[at++] = call.responseBody?.length ?? NONE;
    numbers[at++] = this.#body(call.responseBody);
    numbers[at++] =
      (call.isCustomCost ? 1 : 0) | (call.requestBodyComplete ? 2 : 0) | (call.responseBodyComplete ? 4 : 0);
    this.#rows += 1;
  }

  /** The rows since the last batch; null when there are none. */
  takeBatch(): RowBatch | null {
    const firstRow = this.#firstOfBatch;
    if (firstRow === this.#rows) return null;
    const batch = { memory: this.memory, firstRow, rows: this.#rows - firstRow, texts: this.#texts };
    this.#firstOfBatch = this.#rows;
    this.#texts = [];
    this.#places = new Map();
    return batch;
  }

  /** Makes the memory free again; every batch of it must have been stored. */
  clear(): void {
    this.#rows = 0;
    this.#firstOfBatch = 0;
    this.#bodiesStart = this.memory.byteLength;
  }

  #text(value: string): number {
    const place = this.#places.get(value);
    return place ?? this.#newText(value);
  }

  #newText(value: string): number {
    const place = this.#texts.length;
    this.#texts.push(value);
    this.#places.set(value, place);
    return place;
  }

  #body(bytes: Uint8Array | null): number {
    if (bytes === null || bytes.length === 0) return 0;
    const end = this.#bodiesStart;
    this.#bodiesStart = end - bytes.length;
    // Filling with one whole repetition: `set` and `copy` go through V8's own copy for shared memory, which is twenty times slower.
    this.#bytes.fill(bytes, this.#bodiesStart, end);
    return this.#bodiesStart;
  }
}

/** The calls of a batch, unpacked one at a time; their bodies are views of the shared memory. */
export function* unpackBatch({ memory, firstRow, rows, texts }: RowBatch): Generator<CallRecord, void> {
  const numbers = new Float64Array(memory, 0, Math.floor(memory.byteLength / 8));
  const bytes = Buffer.from(memory);
  const count = (at: number): number => numbers[at] ?? 0;
  const orNull = (at: number): number | null => {
    const value = count(at);
    return Number.isNaN(value) ? null : value;
  };
  const text = (at: number): string => texts[count(at)] ?? "";
  const textOrNull = (at: number): string | null => texts[count(at)] ?? null;
  const body = (at: number): Uint8Array | null => {
    const length = orNull(at);
    return length === null ? null : new Uint8Array(memory, count(at + 1), length);
  };
  for (let row = firstRow; row < firstRow + rows; row++) {
    const at = row * SLOTS_PER_ROW;
    const idAt = at * 8 + ID_AT;
    const flags = count(at + 32);
    yield {
      id: bytes.toString("latin1", idAt, idAt + ID_BYTES),
      accountId: text(at),
      gatewayId: text(at + 1),
      createdAt: count(at + 2),
      provider: text(at + 3),
      model: text(at + 4),
      path: text(at + 5),
      method: text(at + 6),
      requestType: text(at + 7),
      requestContentType: text(at + 8),
      responseContentType: text(at + 9),
      statusCode: count(at + 10),
      success: count(at + 11) === 1,
      durationMs: count(at + 12),
      firstByteMs: orNull(at + 13),
      cached: count(at + 14) === 1,
      step: count(at + 15),
      usage: {
        tokensIn: count(at + 16),
        tokensOut: count(at + 17),
        tokensInCached: count(at + 18),
        tokensInCacheWrite: count(at + 19),
        tokensOutReasoning: count(at + 20),
      },
      cost: orNull(at + 21),
      isCustomCost: (flags & 1) !== 0,
      metadata: textOrNull(at + 22),
      eventId: textOrNull(at + 23),
      userAgent: text(at + 24),
      tokenId: textOrNull(at + 25),
      requestBytes: count(at + 26),
      responseBytes: count(at + 27),
      requestBody: body(at + 28),
      responseBody: body(at + 30),
      requestBodyComplete: (flags & 2) !== 0,
      responseBodyComplete: (flags & 4) !== 0,
    };
  }
}

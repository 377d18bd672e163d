/**
 * Finished calls on their way to the writer's thread, in a form that costs the main thread little: 0.4 µs a row measured, against
 * 1.4 µs for cloning the records themselves.
 *
 * A batch is four flat things: ids, a dictionary of the other texts (most repeat from call to call), one array of numbers whose memory
 * moves instead of being copied, and all bodies in one such piece of memory. Bodies are copied into it, never taken: the caller's memory
 * may be a view of a shared pool, or still be in use for the response cache.
 */
import type { CallRecord } from "../../ports/call-log.ts";

export interface RowBatch {
  readonly ids: readonly string[];
  readonly texts: readonly string[];
  readonly numbers: Float64Array<ArrayBuffer>;
  readonly bodies: Uint8Array<ArrayBuffer>;
}

const NUMBERS_PER_ROW = 31;
/** Stands for null among the numbers and for "no text" among the dictionary's indexes. */
const NONE = Number.NaN;

export function encodeBatch(records: readonly CallRecord[]): RowBatch {
  const texts: string[] = [];
  const indexes = new Map<string, number>();
  const text = (value: string | null): number => {
    if (value === null) return NONE;
    let index = indexes.get(value);
    if (index === undefined) {
      index = texts.length;
      texts.push(value);
      indexes.set(value, index);
    }
    return index;
  };
  const numbers = new Float64Array(records.length * NUMBERS_PER_ROW);
  const bodies = new Uint8Array(bodyBytes(records));
  let bodyEnd = 0;
  const body = (bytes: Uint8Array | null): number => {
    if (bytes === null) return NONE;
    bodies.set(bytes, bodyEnd);
    bodyEnd += bytes.length;
    return bytes.length;
  };
  let at = 0;
  for (const call of records) {
    const { usage } = call;
    numbers[at++] = text(call.accountId);
    numbers[at++] = text(call.gatewayId);
    numbers[at++] = call.createdAt;
    numbers[at++] = text(call.provider);
    numbers[at++] = text(call.model);
    numbers[at++] = text(call.path);
    numbers[at++] = text(call.method);
    numbers[at++] = text(call.requestType);
    numbers[at++] = text(call.requestContentType);
    numbers[at++] = text(call.responseContentType);
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
    numbers[at++] = text(call.metadata);
    numbers[at++] = text(call.eventId);
    numbers[at++] = text(call.userAgent);
    numbers[at++] = text(call.tokenId);
    numbers[at++] = call.requestBytes;
    numbers[at++] = call.responseBytes;
    numbers[at++] = body(call.requestBody);
    numbers[at++] = body(call.responseBody);
    numbers[at++] =
      (call.isCustomCost ? 1 : 0) | (call.requestBodyComplete ? 2 : 0) | (call.responseBodyComplete ? 4 : 0);
  }
  return { ids: records.map((call) => call.id), texts, numbers, bodies };
}

export function decodeBatch({ ids, texts, numbers, bodies }: RowBatch): CallRecord[] {
  let at = 0;
  let bodyEnd = 0;
  const number = (): number => numbers[at++] ?? NONE;
  const count = (): number => number() || 0;
  const orNull = (): number | null => {
    const value = number();
    return Number.isNaN(value) ? null : value;
  };
  const textOrNull = (): string | null => texts[number()] ?? null;
  const text = (): string => textOrNull() ?? "";
  const body = (): Uint8Array | null => {
    const size = orNull();
    if (size === null) return null;
    bodyEnd += size;
    return bodies.subarray(bodyEnd - size, bodyEnd);
  };
  return ids.map((id) => {
    // Properties are evaluated in the order in which they were encoded.
    const row = {
      id,
      accountId: text(),
      gatewayId: text(),
      createdAt: count(),
      provider: text(),
      model: text(),
      path: text(),
      method: text(),
      requestType: text(),
      requestContentType: text(),
      responseContentType: text(),
      statusCode: count(),
      success: number() === 1,
      durationMs: count(),
      firstByteMs: orNull(),
      cached: number() === 1,
      step: count(),
      usage: {
        tokensIn: count(),
        tokensOut: count(),
        tokensInCached: count(),
        tokensInCacheWrite: count(),
        tokensOutReasoning: count(),
      },
      cost: orNull(),
      metadata: textOrNull(),
      eventId: textOrNull(),
      userAgent: text(),
      tokenId: textOrNull(),
      requestBytes: count(),
      responseBytes: count(),
      requestBody: body(),
      responseBody: body(),
    };
    const flags = number();
    return {
      ...row,
      isCustomCost: (flags & 1) !== 0,
      requestBodyComplete: (flags & 2) !== 0,
      responseBodyComplete: (flags & 4) !== 0,
    };
  });
}

export function bodyBytes(records: readonly CallRecord[]): number {
  let bytes = 0;
  for (const call of records) bytes += bodyBytesOf(call);
  return bytes;
}

export function bodyBytesOf(call: CallRecord): number {
  return (call.requestBody?.length ?? 0) + (call.responseBody?.length ?? 0);
}

/**
 * Where finished gateway calls go, and how they are read back. Rows leave the request path through a bounded queue to a writer off the
 * main thread.
 *
 * Invariants every adapter keeps:
 * 1. `record` never does I/O on the caller's thread and never loses a row silently: when the queue is full, `hasRoom` is false and
 *    `whenRoom` resolves once the caller may go on. Nobody may write into a body after it was recorded.
 *    While rows cannot be written at all (a full disk, or one that does not answer), calls are worth more than their rows: nobody waits, rows
 *    wait up to the queue's limits, and those beyond are dropped and counted.
 * 2. A read or change sees every row recorded before it was called, flushed or not.
 * 3. `close` resolves when every recorded row is on stable storage, and rejects after a bounded time when that cannot be.
 * 4. A row belongs to one gateway of one account: no read or change reaches it through another.
 * 5. Usage figures count every recorded call once, also calls whose rows a quota kept out or were deleted since; they go when their
 *    day expires or the gateway is dropped.
 * 6. The log as a whole has a size limit: the oldest bodies go first, and when none is left, the oldest rows. A row whose body went says
 *    that it had one.
 */
export interface CallRecord {
  /** ULID; also the order of rows. */
  readonly id: string;
  readonly accountId: string;
  readonly gatewayId: string;
  /** Milliseconds since the epoch, when the request's headers had arrived. */
  readonly createdAt: number;
  readonly provider: string;
  readonly model: string;
  /** Path after the provider segment, without the query. */
  readonly path: string;
  readonly method: string;
  /** What kind of call it was: `chat`, `responses`, `messages`, `embeddings`, …; empty when unknown. */
  readonly requestType: string;
  readonly requestContentType: string;
  readonly responseContentType: string;
  readonly statusCode: number;
  readonly success: boolean;
  /** To the end of the response. */
  readonly durationMs: number;
  /** To the response's first byte; null when none came. */
  readonly firstByteMs: number | null;
  readonly cached: boolean;
  /** Index of the fallback step that answered. */
  readonly step: number;
  readonly usage: CallUsage;
  /** US dollars; null when the model's price is unknown. */
  readonly cost: number | null;
  readonly isCustomCost: boolean;
  /** Flat JSON object from the request, serialised. */
  readonly metadata: string | null;
  readonly eventId: string | null;
  readonly userAgent: string;
  /** Token that authorised the call, if the gateway requires one. */
  readonly tokenId: string | null;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Bodies as kept, possibly cut at the limit; null when payloads are not collected. */
  readonly requestBody: Uint8Array | null;
  readonly responseBody: Uint8Array | null;
  readonly requestBodyComplete: boolean;
  readonly responseBodyComplete: boolean;
}

/** Token counts as providers report them; `in` and `out` are totals that include the finer counts. */
export interface CallUsage {
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** Part of `tokensIn` read from the provider's prompt cache. */
  readonly tokensInCached: number;
  /** Part of `tokensIn` written to the provider's prompt cache. */
  readonly tokensInCacheWrite: number;
  /** Part of `tokensOut` spent on reasoning. */
  readonly tokensOutReasoning: number;
}

export const NO_USAGE: CallUsage = {
  tokensIn: 0,
  tokensOut: 0,
  tokensInCached: 0,
  tokensInCacheWrite: 0,
  tokensOutReasoning: 0,
};

/** The part of the call log that the request path sees. */
export interface CallSink {
  record(call: CallRecord): void;
  readonly hasRoom: boolean;
  whenRoom(): Promise<void>;
}

export interface GatewayRef {
  readonly accountId: string;
  readonly gatewayId: string;
}

/** A stored call without its bodies. */
export interface CallRow extends Omit<CallRecord, "requestBody" | "responseBody"> {
  /** -1, 1, or null when nobody said. */
  readonly feedback: number | null;
  readonly score: number | null;
  readonly hasRequestBody: boolean;
  readonly hasResponseBody: boolean;
}

/** What a filter can ask for; `metadataKey` and a following `metadataValue` speak of the same entry. */
export const CALL_FIELDS = [
  "id",
  "createdAt",
  "provider",
  "model",
  "path",
  "requestType",
  "requestContentType",
  "responseContentType",
  "statusCode",
  "success",
  "cached",
  "cost",
  "tokens",
  "tokensIn",
  "tokensOut",
  "duration",
  "feedback",
  "eventId",
  "userAgent",
  "isAuthenticated",
  "metadataKey",
  "metadataValue",
] as const;

export type CallField = (typeof CALL_FIELDS)[number];
export type CallOperator = "eq" | "neq" | "contains" | "lt" | "gt" | "lte" | "gte";

export interface CallFilter {
  readonly field: CallField;
  readonly operator: CallOperator;
  /** Any of them must fit (`neq`: none). Times are milliseconds, booleans 0 or 1. */
  readonly values: readonly (string | number | null)[];
}

export const CALL_ORDERS = [
  "createdAt",
  "provider",
  "model",
  "requestType",
  "success",
  "cached",
  "cost",
  "tokensIn",
  "tokensOut",
  "duration",
  "feedback",
] as const;

export type CallOrder = (typeof CALL_ORDERS)[number];

export interface CallSelection {
  /** All must hold. */
  readonly filters: readonly CallFilter[];
  /** Text in a key or value of the metadata; empty: any. */
  readonly search: string;
}

export interface CallPageRequest extends CallSelection {
  readonly orderBy: CallOrder;
  readonly direction: "asc" | "desc";
  readonly offset: number;
  readonly limit: number;
}

export interface CallPage {
  readonly rows: readonly CallRow[];
  /** Of all pages. */
  readonly total: number;
}

export interface CallRanges {
  readonly cost: Range;
  readonly duration: Range;
  readonly tokensIn: Range;
  readonly tokensOut: Range;
  readonly tokens: Range;
}

/** Null when no row matches. */
export interface Range {
  readonly min: number | null;
  readonly max: number | null;
}

export interface CallDeletion extends CallSelection {
  readonly orderBy: CallOrder;
  readonly direction: "asc" | "desc";
  /** At most this many; null: all that match. */
  readonly limit: number | null;
}

/** Absent keys stay as they are. */
export interface CallPatch {
  readonly feedback?: number | null;
  readonly score?: number | null;
  /** Serialised flat JSON object. */
  readonly metadata?: string | null;
}

export type BodySide = "request" | "response";

export interface StoredBody {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /** False when the body was longer than what was kept. */
  readonly isComplete: boolean;
}

/** How many rows a gateway may keep, and what happens to the next one. */
export interface CallQuota {
  readonly maxRows: number;
  readonly whenFull: "stop" | "deleteOldest";
}

export const USAGE_GROUPS = ["hour", "day", "provider", "model", "gateway"] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export interface UsageQuery {
  readonly accountId: string;
  /** Null: all gateways of the account. */
  readonly gatewayIds: readonly string[] | null;
  /** Milliseconds; `from` is inclusive, `to` exclusive; both are taken at whole hours. */
  readonly from: number;
  readonly to: number;
  readonly groupBy: readonly UsageGroup[];
}

export interface UsageFigures {
  /** Start of the hour or day in milliseconds; null when not grouped by it, like the other group fields. */
  readonly time: number | null;
  readonly gatewayId: string | null;
  readonly provider: string | null;
  readonly model: string | null;
  readonly calls: number;
  readonly errors: number;
  readonly cached: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
  readonly tokensInCached: number;
  readonly tokensOutReasoning: number;
  /** Sum of the known costs. */
  readonly cost: number;
  readonly durationMs: number;
  /** Calls per bucket of `LATENCY_BUCKETS_MS`, the last one for those above all bounds. */
  readonly latency: readonly number[];
}

/** Upper bounds in milliseconds: from a cached answer to a long generation. */
export const LATENCY_BUCKETS_MS = [
  5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000,
];

/** How large the log is on disk, and what its size limit has cost since the process started. */
export interface CallLogSize {
  /** As of the last write; 0 before the first. */
  readonly bytes: number;
  readonly bodiesRemoved: number;
  readonly rowsRemoved: number;
}

export interface CallLog extends CallSink {
  /** Why rows cannot be written at the moment, in words for operators; null when they can. It becomes null by itself. */
  readonly problem: string | null;
  /** Rows that were dropped since the start, and those that wait. */
  readonly droppedCalls: number;
  readonly queuedCalls: number;
  readonly size: CallLogSize;
  list(gateway: GatewayRef, page: CallPageRequest): Promise<CallPage>;
  ranges(gateway: GatewayRef, selection: CallSelection): Promise<CallRanges>;
  get(gateway: GatewayRef, id: string): Promise<CallRow | null>;
  /**
   * Null when there is no such row, its body was not kept, or (if the row says that it had one) was removed for the log's size;
   * `maxBytes` asks for its beginning only.
   */
  body(gateway: GatewayRef, id: string, side: BodySide, maxBytes?: number): Promise<StoredBody | null>;
  /** False when there is no such row. */
  edit(gateway: GatewayRef, id: string, patch: CallPatch): Promise<boolean>;
  /** Resolves with the number of rows deleted. */
  delete(gateway: GatewayRef, deletion: CallDeletion): Promise<number>;
  summarise(query: UsageQuery): Promise<UsageFigures[]>;
  /** Applies from the next recorded row on; null lifts the quota. Quotas are not stored: whoever owns the setting sets it at each start. */
  setQuota(gateway: GatewayRef, quota: CallQuota | null): void;
  /** Forgets everything about a gateway: rows, bodies and usage figures. */
  dropGateway(gateway: GatewayRef): Promise<void>;
  close(): Promise<void>;
}

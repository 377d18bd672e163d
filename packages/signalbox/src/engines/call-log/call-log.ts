/**
 * The call log: where finished calls are stored and read. README.md lists the invariants, which comments and tests cite by number.
 *
 * The types of a call are generated from the table in `columns.ts`.
 */
import type { CallValues, RecordColumn } from "./columns.ts";
import type { CallNeighbours, CallScan, CallSlice, StoredCalls } from "./call-scan.ts";
import type { CallRow, GatewayRef, StoredBody } from "./stored-call.ts";
import type { CallDeletion, CallPageRequest, CallRanges, CallSelection } from "./selection.ts";
import type { UsageFigures, UsageQuery } from "./usage.ts";
import type { UsageBy, UsageByQuery } from "./usage-by.ts";

export type { CallRow, GatewayRef, StoredBody };

/** A finished call, as the caller records it. */
export interface CallRecord extends GatewayRef, Pick<CallValues, RecordColumn> {
  /** Null if bodies are not collected. The log copies the bytes before `record` returns. */
  readonly requestBody: Uint8Array | null;
  readonly responseBody: Uint8Array | null;
}

export interface CallPage {
  readonly rows: readonly CallRow[];
  /** Number of matching rows on all pages. */
  readonly total: number;
}

/** A change of a stored call; absent keys keep their values. */
export interface CallPatch {
  readonly feedback?: number | null;
  readonly score?: number | null;
  /** Serialised flat JSON object. */
  readonly metadata?: string | null;
}

export type BodySide = "request" | "response";

/** How many rows a gateway may keep, and what happens beyond. */
export interface CallQuota {
  readonly maxRows: number;
  readonly whenFull: "stop" | "deleteOldest";
}

/** Disk space of the log, and what the size limit has removed since the process started. */
export interface CallLogSize {
  /** As of the last write; 0 before the first. */
  readonly bytes: number;
  readonly bodiesRemoved: number;
  readonly rowsRemoved: number;
}

/** The part of the call log that the request path uses. */
export interface CallSink {
  /** Queues a call; does no I/O. Check `hasRoom` first, and await `whenRoom` if it is false. */
  record(call: CallRecord): void;
  readonly hasRoom: boolean;
  /** Resolves when the caller may record a call. */
  whenRoom(): Promise<void>;
}

export interface CallLog extends CallSink {
  /** Why calls cannot be written at the moment, for operators; null if they can. The value returns to null by itself. */
  readonly problem: string | null;
  /** Days (`2026-11-15`) whose file a later release has written: their calls and usage are not shown and not changed. */
  readonly unreadableDays: readonly string[];
  /** Calls dropped since the process started. */
  readonly droppedCalls: number;
  /** Calls that are not durable yet. */
  readonly queuedCalls: number;
  readonly size: CallLogSize;
  /** Resolves when all calls that were recorded before are durable. */
  flush(): Promise<void>;
  /** The database has another server, was restarted, or does not answer: the connection is replaced. Absent if the log is in files. */
  reconnect?(): void;
  list(gateway: GatewayRef, page: CallPageRequest): Promise<CallPage>;
  ranges(gateway: GatewayRef, selection: CallSelection): Promise<CallRanges>;
  get(gateway: GatewayRef, id: string): Promise<CallRow | null>;
  /**
   * Null if there is no such row, if its body was not stored, or if the size limit has removed the body; in the last case
   * `hasRequestBody` or `hasResponseBody` of the row is still true. `maxBytes` reads the beginning of the body.
   */
  body(gateway: GatewayRef, id: string, side: BodySide, maxBytes?: number): Promise<StoredBody | null>;
  /** False if there is no such row. */
  edit(gateway: GatewayRef, id: string, patch: CallPatch): Promise<boolean>;
  /** Resolves with the number of rows deleted. */
  delete(gateway: GatewayRef, deletion: CallDeletion): Promise<number>;
  summarise(query: UsageQuery): Promise<UsageFigures[]>;
  /** One slice of a scan over the gateways of an account, with previews, search in texts, or bodies. */
  scan(scan: CallScan): Promise<CallSlice>;
  /** At most `limit` calls of all accounts that were stored after a position, with their bodies; a null position is the current end. */
  storedAfter(position: string | null, limit: number): Promise<StoredCalls>;
  neighbours(gateway: GatewayRef, id: string): Promise<CallNeighbours>;
  /** Usage by token or metadata, from totals or from the rows. Rejects soon after the signal if rows are read. */
  summariseBy(query: UsageByQuery, signal?: AbortSignal): Promise<UsageBy>;
  /** Applies to calls recorded from now on; null removes the quota. Quotas are not stored: set them after every start. */
  setQuota(gateway: GatewayRef, quota: CallQuota | null): void;
  /** Deletes the rows, bodies and usage of a gateway. */
  dropGateway(gateway: GatewayRef): Promise<void>;
  /** Resolves when every recorded call is durable; rejects after a bounded time if the calls cannot be written. */
  close(): Promise<void>;
}

/** Messages between the main thread and the two threads of the call log. */
import type { CallQuota, GatewayRef } from "./call-log.ts";
import type { RowBatch } from "./row-batch.ts";

/** What the size limit has removed since the thread started. */
export interface RemovedForSize {
  readonly bodies: number;
  readonly rows: number;
}

/** Responses may arrive in any order. */
export interface WorkerRequest {
  readonly kind: "request";
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export type WorkerResponse =
  | { readonly kind: "result"; readonly id: number; readonly value: unknown }
  | {
      readonly kind: "error";
      readonly id: number;
      readonly message: string;
      /** The failure is temporary (full disk, lock): clients get a 503. */
      readonly isUnavailable: boolean;
    };

/** To the writer, in order. */
export type WriterMessage =
  | { readonly kind: "rows"; readonly batch: RowBatch; readonly bodyBytes: number; readonly position: number }
  /** A read waits for the rows sent so far: commit them now. */
  | { readonly kind: "flush" }
  | { readonly kind: "quota"; readonly gateway: GatewayRef; readonly quota: CallQuota | null }
  | WorkerRequest;

/** From the writer. */
export type WriterReport =
  /** Every row up to the position is durable. */
  | { readonly kind: "committed"; readonly position: number }
  /** Size of the day files, and what the size limit has removed since the thread started. */
  | { readonly kind: "size"; readonly bytes: number; readonly removed: RemovedForSize }
  /** A commit failed; its rows are kept and the commit is retried. */
  | { readonly kind: "failed"; readonly message: string }
  | WorkerResponse;

export interface WriterOptions {
  readonly folder: string;
  readonly maxBodyBytes: number;
  readonly maxTotalBytes: number;
  readonly usageTotals: boolean;
  readonly flushIntervalMs: number;
}

export interface ReaderOptions {
  readonly folder: string;
}

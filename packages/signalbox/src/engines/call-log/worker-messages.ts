/** What the main thread and the call log's two threads say to each other. */
import type { CallQuota, GatewayRef } from "./call-log.ts";
import type { RowBatch } from "./row-batch.ts";
import type { RemovedForSize } from "./size-limit.ts";

/** A question with an answer; questions are answered in any order. */
export interface Question {
  readonly kind: "ask";
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export type Answer =
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown }
  /** Of a failure that passes by itself, clients are told so. */
  | {
      readonly kind: "error";
      readonly id: number;
      readonly message: string;
      readonly isUnavailable: boolean;
    };

/** To the writer, in order. */
export type WriterMessage =
  | { readonly kind: "rows"; readonly batch: RowBatch; readonly bodyBytes: number; readonly upTo: number }
  /** Someone waits for what was sent so far. */
  | { readonly kind: "flush" }
  | { readonly kind: "quota"; readonly gateway: GatewayRef; readonly quota: CallQuota | null }
  | Question;

/** From the writer. */
export type WriterReport =
  /** Everything up to this position is on stable storage. */
  | { readonly kind: "committed"; readonly upTo: number }
  /** After a commit or a removal: how large the day files are, and what the size limit has taken since the thread started. */
  | { readonly kind: "size"; readonly bytes: number; readonly removed: RemovedForSize }
  /** A commit failed and will be tried again; nothing is lost yet. */
  | { readonly kind: "failed"; readonly message: string }
  | Answer;

export interface WriterOptions {
  readonly folder: string;
  readonly maxBodyBytes: number;
  readonly maxTotalBytes: number;
  readonly flushIntervalMs: number;
}

export interface ReaderOptions {
  readonly folder: string;
}

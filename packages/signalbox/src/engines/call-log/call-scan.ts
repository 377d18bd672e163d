/**
 * Reads calls of all gateways of an account, in the order in which they were stored, with their texts: for lists with previews, search in
 * prompts and answers, and exports.
 *
 * A scan is done in slices. Each slice has a budget of time and bytes and returns where the next one continues, so that a search through a
 * million bodies neither blocks other reads nor holds its results in memory.
 */
import type { CallRow, StoredBody } from "./stored-call.ts";
import type { CallSelection } from "./selection.ts";

export interface CallScan {
  readonly accountId: string;
  /** Null: all gateways of the account. */
  readonly gatewayIds: readonly string[] | null;
  readonly selection: CallSelection;
  /** The prompt or the answer contains this text; upper and lower case are equal. Empty: all calls. */
  readonly text: string;
  /** `desc`: newest first. */
  readonly direction: "asc" | "desc";
  /** Of an earlier slice; null begins. */
  readonly cursor: string | null;
  readonly limit: number;
  /** Characters of the previews of prompt and answer; 0: none. */
  readonly previewLength: number;
  readonly withBodies: boolean;
}

export interface ScannedCall {
  readonly row: CallRow;
  /** Null without a stored body, or without text in it. */
  readonly prompt: string | null;
  readonly answer: string | null;
  readonly request: StoredBody | null;
  readonly response: StoredBody | null;
}

export interface CallSlice {
  readonly calls: readonly ScannedCall[];
  /** Null at the end. */
  readonly next: string | null;
  /** Rows that were looked at. */
  readonly scanned: number;
}

/** What has been stored after a position. */
export interface StoredCalls {
  readonly calls: readonly ScannedCall[];
  /** Continues after the calls. */
  readonly position: string;
  /** False if more calls have been stored already. */
  readonly isEnd: boolean;
}

/** The calls of a gateway before and after one, by time. */
export interface CallNeighbours {
  readonly newer: string | null;
  readonly older: string | null;
}

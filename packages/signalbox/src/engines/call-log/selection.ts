/** Which stored calls to read or delete, and in which order. */
import type { FilterableColumn, SortableColumn } from "./columns.ts";

/**
 * A filterable column, or one of: `tokens`, the sum of input and output; `isAuthenticated`, whether a token authorised the call; `metadataKey`
 * and `metadataValue`, which apply to the same metadata entry if the value's filter directly follows the key's.
 */
export type CallField = FilterableColumn | "tokens" | "isAuthenticated" | "metadataKey" | "metadataValue";
export type CallOperator = "eq" | "neq" | "contains" | "lt" | "gt" | "lte" | "gte";

export interface CallFilter {
  readonly field: CallField;
  readonly operator: CallOperator;
  /** One of the values must match (`neq`: none may). Times are milliseconds, flags 0 or 1. */
  readonly values: readonly (string | number | null)[];
}

export interface CallSelection {
  /** All filters must match. */
  readonly filters: readonly CallFilter[];
  /** Text that a key or value of the metadata contains; empty: no search. */
  readonly search: string;
}

export type CallOrder = SortableColumn;

export interface Order {
  readonly orderBy: CallOrder;
  readonly direction: "asc" | "desc";
}

export interface CallPageRequest extends CallSelection, Order {
  readonly offset: number;
  readonly limit: number;
}

export interface CallDeletion extends CallSelection, Order {
  /** Deletes the first rows in the order; null: all that match. */
  readonly limit: number | null;
}

export const RANGE_FIELDS = ["cost", "durationMs", "tokensIn", "tokensOut", "tokens"] as const;

export type CallRanges = Readonly<Record<(typeof RANGE_FIELDS)[number], Range>>;

/** Null if no row has a value. */
export interface Range {
  readonly min: number | null;
  readonly max: number | null;
}

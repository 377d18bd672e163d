/** Rows of `limit_amount`: what a process that is alone, or an earlier version, has stored of limits. */
import type { FoundAmount } from "./spend-journal.ts";

export interface AmountRow {
  readonly account_id: string;
  readonly owner: string;
  readonly bucket: string;
  readonly slot_start: number;
  readonly ends_at: number;
  readonly amount: number;
}

export function fromAmountRow(row: AmountRow): FoundAmount {
  return {
    accountId: row.account_id,
    owner: row.owner,
    bucket: row.bucket,
    slot: row.slot_start,
    end: row.ends_at,
    amount: row.amount,
  };
}

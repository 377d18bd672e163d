/**
 * The window of a rule has changed, and its row has amounts in slots of the earlier one.
 *
 * The first node that uses the new window converts the row: amounts that count in the new window are kept. A node that has not received the new
 * setting yet must not convert it back, which would lose amounts, so it uses the window of the row for some seconds.
 */
import { RATE_RULE } from "./limit-rule.ts";
import type { ShareRow, ShareTable } from "./share-table.ts";
import type { SharedBucket } from "./shared-bucket.ts";
import { parseWindow } from "./window.ts";

/** Longer than a change of settings takes to reach every node. */
const SETTLING_MS = 10_000;

/** Uses the window of the row; false if the row must be converted. */
export function adoptWindow(bucket: SharedBucket, row: ShareRow): boolean {
  if (row.window_age > SETTLING_MS || row.earlier_window !== bucket.window.key) return false;
  bucket.adopt(parseWindow(row.window_key), SETTLING_MS - row.window_age);
  return true;
}

/** If another node changes the row meanwhile, the next statement finds out. */
export async function convertRow(
  table: ShareTable,
  { window, name }: SharedBucket,
  row: ShareRow,
  now: number,
): Promise<void> {
  const used: Record<string, number> = {};
  const current = window.slotOf(now);
  // A changed rate limit of a gateway starts a new count.
  const kept = name === RATE_RULE ? [] : Object.entries(row.used);
  for (const [slot, amount] of kept) {
    const at = window.slotOf(Number(slot));
    if (now < window.endOf(at)) {
      const counted = Math.min(at, current);
      used[counted] = (used[counted] ?? 0) + amount;
    }
  }
  await table.convert(row, { window_key: window.key, used, slot: current });
}

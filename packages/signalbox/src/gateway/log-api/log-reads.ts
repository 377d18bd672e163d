/**
 * The reads of the call log that may take long. All accounts share its reader, so they take turns (`core/fair-queue.ts`). Scans and exports ask
 * for one slice after the other, and wait for their turn before each.
 */
import { FairQueue } from "../../core/fair-queue.ts";
import type { CallLog } from "../../engines/call-log/index.ts";

export type LogReads = Pick<
  CallLog,
  "list" | "ranges" | "scan" | "summarise" | "summariseBy" | "unreadableDays"
>;

/** Two, so that the reader need not wait for the main thread between them. */
const MAX_RUNNING = 2;
/** Of one account. */
const MAX_WAITING = 100;

export function inTurns(callLog: CallLog): LogReads {
  const turns = new FairQueue(MAX_RUNNING, MAX_WAITING);
  return {
    list: (gateway, page) => turns.run(gateway.accountId, () => callLog.list(gateway, page)),
    ranges: (gateway, selection) => turns.run(gateway.accountId, () => callLog.ranges(gateway, selection)),
    scan: (scan) => turns.run(scan.accountId, () => callLog.scan(scan)),
    summarise: (query) => turns.run(query.accountId, () => callLog.summarise(query)),
    summariseBy: (query, signal) => turns.run(query.accountId, () => callLog.summariseBy(query, signal)),
    get unreadableDays() {
      return callLog.unreadableDays;
    },
  };
}

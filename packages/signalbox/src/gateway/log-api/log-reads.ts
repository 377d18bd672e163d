/**
 * The reads of the call log that may take long. All accounts share its readers, so they take turns (`core/fair-queue.ts`). Scans and exports ask
 * for one slice after the other, and wait for their turn before each.
 */
import { FairQueue } from "../../core/fair-queue.ts";
import { type CallLog, isPageByTime, isPageOfAll } from "../../engines/call-log/index.ts";

export type LogReads = Pick<
  CallLog,
  "list" | "ranges" | "scan" | "summarise" | "summariseBy" | "unreadableDays"
>;

/** As many as there are threads that read for long, so that none need wait for the main thread. */
const MAX_RUNNING = 2;
/** Of one account. */
const MAX_WAITING = 100;

export function inTurns(callLog: CallLog): LogReads {
  const turns = new FairQueue(MAX_RUNNING, MAX_WAITING);
  // A page that is read by its place never waits for a search.
  const pages = new FairQueue(MAX_RUNNING, MAX_WAITING);
  return {
    list: (gateway, page) =>
      (isPageByTime(page) ? pages : turns).run(gateway.accountId, () => callLog.list(gateway, page)),
    ranges: (gateway, selection) => turns.run(gateway.accountId, () => callLog.ranges(gateway, selection)),
    scan: (scan) => (isPageOfAll(scan) ? pages : turns).run(scan.accountId, () => callLog.scan(scan)),
    summarise: (query) => pages.run(query.accountId, () => callLog.summarise(query)),
    summariseBy: (query, signal) => turns.run(query.accountId, () => callLog.summariseBy(query, signal)),
    get unreadableDays() {
      return callLog.unreadableDays;
    },
  };
}

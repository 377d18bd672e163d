/** Reads whose number of rows is bounded by their page, however many calls there are. Others must not delay them. */
import type { CallScan } from "./call-scan.ts";
import type { CallPageRequest } from "./selection.ts";
import { isEverything } from "./selection-sql.ts";

export function isPageByTime(page: CallPageRequest): boolean {
  return page.orderBy === "createdAt" && isEverything(page);
}

/** Searches read bodies; exports read many of them. */
export function isPageOfAll(scan: CallScan): boolean {
  return scan.text === "" && !scan.withBodies && isEverything(scan.selection);
}

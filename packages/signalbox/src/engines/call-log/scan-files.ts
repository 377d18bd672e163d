/** Scans over all day files: by a cursor, and by the positions that a follower has reached in each file. */
import { sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { CallNeighbours, CallScan, CallSlice, StoredCalls } from "./call-scan.ts";
import type { GatewayRef } from "./call-log.ts";
import { findGatewayKey } from "./day-file.ts";
import { DAY_MS, type Day, dayOfId, startOfDay } from "./day-files.ts";
import { scanDay, ScanSlice, scanStored } from "./scan-calls.ts";
import { timeSpan } from "./selection-span.ts";

export interface DayFiles {
  /** Oldest first. */
  days(): readonly Day[];
  /** Undefined if the file cannot be read. */
  open(day: Day): SqliteConnection | undefined;
}

const CURSOR = /^(\d{4}-\d{2}-\d{2})\.(\d{1,15})$/;

export function scanFiles(files: DayFiles, scan: CallScan): CallSlice {
  const [, cursorDay = null, seq = ""] = CURSOR.exec(scan.cursor ?? "") ?? [];
  const isDown = scan.direction === "desc";
  const days = isDown ? files.days().toReversed() : files.days();
  const slice = new ScanSlice(scan.limit);
  const { from, to } = timeSpan(scan.selection);
  for (const day of days) {
    if (cursorDay !== null && (isDown ? day > cursorDay : day < cursorDay)) continue;
    if (startOfDay(day) + DAY_MS <= from || startOfDay(day) > to) continue;
    const connection = files.open(day);
    if (connection === undefined) continue;
    const { last, isEnd } = scanDay(connection, scan, day === cursorDay ? Number(seq) : null, slice);
    if (!isEnd) return { calls: slice.calls, scanned: slice.scanned, next: `${day}.${last}` };
  }
  return { calls: slice.calls, scanned: slice.scanned, next: null };
}

/** The number of the last row by day. A slow call is added to the file of the day on which it began, so older files are followed, too. */
type Positions = Readonly<Record<Day, number>>;

/** A null position is the current end. */
export function storedAfter(files: DayFiles, position: string | null, limit: number): StoredCalls {
  const known = position === null ? null : (JSON.parse(position) as Positions);
  const positions: Record<Day, number> = {};
  const slice = new ScanSlice(limit);
  let isEnd = true;
  for (const day of files.days()) {
    const connection = files.open(day);
    if (connection === undefined) {
      // A file that cannot be read now is read later.
      if (known?.[day] !== undefined) positions[day] = known[day];
      continue;
    }
    const newest = connection.get<{ seq: number | null }>(sql`SELECT max(seq) AS seq FROM call`)?.seq ?? -1;
    // Deleted rows may have been the newest ones; the next ones take their numbers.
    const after = Math.min(known === null ? newest : (known[day] ?? -1), newest);
    positions[day] = after;
    if (newest <= after) continue;
    if (slice.isFull) {
      isEnd = false;
      continue;
    }
    const options = { text: "", previewLength: 0, withBodies: true };
    const scanned = scanStored(connection, after, options, slice);
    positions[day] = scanned.last ?? after;
    isEnd &&= scanned.isEnd;
  }
  return { calls: slice.calls, position: JSON.stringify(positions), isEnd };
}

export function neighboursOf(files: DayFiles, gateway: GatewayRef, id: string): CallNeighbours {
  const own = dayOfId(id);
  const days = files.days();
  const find = (some: readonly Day[], isNewer: boolean): string | null => {
    for (const day of some) {
      const connection = files.open(day);
      const key = connection && findGatewayKey(connection, gateway.accountId, gateway.gatewayId)?.key;
      if (connection === undefined || key === undefined) continue;
      const found = connection.get<{ id: string }>(
        isNewer
          ? sql`SELECT id FROM call WHERE gateway = ${key} AND id > ${id} ORDER BY id LIMIT 1`
          : sql`SELECT id FROM call WHERE gateway = ${key} AND id < ${id} ORDER BY id DESC LIMIT 1`,
      );
      if (found !== undefined) return found.id;
    }
    return null;
  };
  return {
    newer: find(
      days.filter((day) => day >= own),
      true,
    ),
    older: find(days.filter((day) => day <= own).toReversed(), false),
  };
}

/** Rows of several days in one order. */

export interface Ranked {
  readonly id: string;
  readonly rank: string | number | null;
}

/** The first rows of all in the order; ids break ties, in the same direction. */
export function firstRanked(rows: Ranked[], direction: "asc" | "desc", limit: number): Ranked[] {
  const sign = direction === "asc" ? 1 : -1;
  return rows.sort((a, b) => sign * (compare(a.rank, b.rank) || compare(a.id, b.id))).slice(0, limit);
}

/** The order of SQLite: null first, then numbers, or texts by their bytes. */
function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  if (typeof a === "string" && typeof b === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : 1;
}

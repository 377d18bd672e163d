/** A full disk is a matter of time, unlike every other failure to write. */

const SQLITE_FULL = 13;

/** What `node:fs` or SQLite says when there is no room. */
export function isFullDisk(error: unknown): error is Error {
  const { code, errcode } = error as { readonly code?: string; readonly errcode?: number };
  return code === "ENOSPC" || code === "EDQUOT" || errcode === SQLITE_FULL;
}

/**
 * Failures of storage that pass by themselves, told from those that do not: a full disk gets room, another program lets go of its lock. Every
 * other failure to write is a matter for people.
 */
import { SignalboxError } from "@signalbox/protocol";

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
/** The shared-memory file beside a log could not grow: the only thing besides the files themselves that needs room. */
const SQLITE_IOERR_SHMSIZE = 4874;
/** Extended codes keep the plain one in their lowest byte. */
const PLAIN_CODE = 0xff;

/** How many seconds a client that was turned away should wait. */
const RETRY_AFTER = { "retry-after": "5" };

/** What `node:fs` or SQLite says when there is no room. */
export function isFullDisk(error: unknown): error is Error {
  const { code, errcode } = error as { readonly code?: string; readonly errcode?: number };
  return (
    code === "ENOSPC" || code === "EDQUOT" || errcode === SQLITE_FULL || errcode === SQLITE_IOERR_SHMSIZE
  );
}

/** Another connection, most likely of another program, holds the lock. */
export function isBusy(error: unknown): error is Error {
  const { errcode } = error as { readonly errcode?: number };
  return errcode !== undefined && (errcode & PLAIN_CODE) === SQLITE_BUSY;
}

/** What clients and operators are told of a failure that passes; any other one is given back as it is. */
export function explainFailure(error: unknown): unknown {
  if (isFullDisk(error)) return unavailable("the disk is full", error);
  if (isBusy(error)) return unavailable("another program holds a lock on the database", error);
  return error;
}

function unavailable(reason: string, cause: unknown): SignalboxError {
  return new SignalboxError("storage_unavailable", {
    message: `Storage is unavailable, nothing was written: ${reason}`,
    headers: RETRY_AFTER,
    cause,
  });
}

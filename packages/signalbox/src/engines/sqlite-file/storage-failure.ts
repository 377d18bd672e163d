/**
 * Recognizes temporary failures of storage: a full disk, and a lock of another program. Any other failed write needs an operator.
 * See docs/decisions/0091.
 */
import { SignalboxError } from "@signalbox/protocol";

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const SQLITE_CONSTRAINT = 19;
/** The shared-memory file of the WAL could not grow. */
const SQLITE_IOERR_SHMSIZE = 4874;
/** The lowest byte of an extended code is the primary code. */
const PRIMARY_CODE = 0xff;

/** Seconds after which a client should retry. */
const RETRY_AFTER = { "retry-after": "5" };

/** True for the errors of `node:fs` and SQLite on a full disk. */
export function isFullDisk(error: unknown): error is Error {
  const { code, errcode } = error as { readonly code?: string; readonly errcode?: number };
  return (
    code === "ENOSPC" || code === "EDQUOT" || errcode === SQLITE_FULL || errcode === SQLITE_IOERR_SHMSIZE
  );
}

/** True if another connection, usually of another program, holds the lock. */
export function isBusy(error: unknown): error is Error {
  const { errcode } = error as { readonly errcode?: number };
  return errcode !== undefined && (errcode & PRIMARY_CODE) === SQLITE_BUSY;
}

/** True if the written rows contradict the schema; at a commit, a deferred constraint. */
export function isConstraint(error: unknown): boolean {
  const { errcode } = error as { readonly errcode?: number };
  return errcode !== undefined && (errcode & PRIMARY_CODE) === SQLITE_CONSTRAINT;
}

/** Returns `storage_unavailable` for a temporary failure, and any other error unchanged. */
export function explainFailure(error: unknown): unknown {
  if (isFullDisk(error)) return unavailable("the disk is full", error);
  if (isBusy(error)) return unavailable("another program holds a lock on the database", error);
  return error;
}

export function unavailable(reason: string, cause: unknown): SignalboxError {
  return new SignalboxError("storage_unavailable", {
    message: `Storage is unavailable, nothing was written: ${reason}`,
    headers: RETRY_AFTER,
    cause,
  });
}

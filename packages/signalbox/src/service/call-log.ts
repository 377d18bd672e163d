/** Opens the call log: day files beside SQLite, tables in PostgreSQL. */
import { existsSync } from "node:fs";
import { SignalboxError } from "@signalbox/protocol";
import type { ClusterNode } from "../cluster/index.ts";
import type { Config } from "../config/index.ts";
import { awakeSignal } from "../core/awake-time.ts";
import type { Clock } from "../core/clock.ts";
import type { Database } from "../database/database.ts";
import type { DataFolder } from "../database/sqlite/data-folder.ts";
import { type CallLog, openPostgresCallLog, SqliteCallLog } from "../engines/call-log/index.ts";
import type { Logger } from "../telemetry/logger.ts";

const FLUSH = "call-log.flush";
/** How long a read waits for the calls of other nodes. A node that has ended is no longer a member within this time. */
const MAX_FLUSH_MS = 5000;

/** Bodies that wait to be written; above it, new calls are delayed. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;

const NOTHING = new Uint8Array(0);

export interface CallLogParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly onFatal: (error: Error) => void;
  readonly dataFolder: DataFolder;
  readonly database: Database;
  /** Null for a process that is alone. */
  readonly network: ClusterNode | null;
  readonly clock: Clock;
}

export async function openCallLog(parts: CallLogParts): Promise<CallLog> {
  const { config, logger, onFatal, dataFolder, database, network, clock } = parts;
  const options = {
    ...config.file.gateway.logs,
    maxQueuedBytes: MAX_QUEUED_BYTES,
    clock,
    onError: (error: Error) => logger.error({ err: error }, "call log: error"),
    onRecovery: (droppedCalls: number) => logger.warn({ droppedCalls }, "call log: writes succeed again"),
    onTrimmed: () =>
      logger.warn("the call log reached gateway.logs.maxTotalBytes: deleting the oldest bodies"),
    onFatal,
  };
  if (config.databaseUrl === undefined) {
    return SqliteCallLog.open({ ...options, folder: dataFolder.file("logs") });
  }
  const formerFolder = dataFolder.file("logs");
  if (existsSync(formerFolder)) {
    logger.warn(
      { folder: formerFolder },
      "calls are stored in PostgreSQL; this folder has calls of an earlier version or of SQLite, which are not shown",
    );
  }
  const url = config.databaseUrl.reveal();
  if (network === null) return openPostgresCallLog({ ...options, database, url });
  const log = await openPostgresCallLog({
    ...options,
    database,
    url,
    flushOthers: () => flushOthers(network),
  });
  network.serve(FLUSH, async () => {
    await log.flush();
    return NOTHING;
  });
  return log;
}

/** Resolves when every other node has written the calls that it recorded before. */
async function flushOthers(network: ClusterNode): Promise<void> {
  const signal = awakeSignal(MAX_FLUSH_MS);
  try {
    await network.askAll(FLUSH, NOTHING, signal);
  } catch (cause) {
    throw new SignalboxError("storage_unavailable", {
      message: "The log cannot be read: another node does not answer, or cannot write its calls",
      cause,
    });
  }
}

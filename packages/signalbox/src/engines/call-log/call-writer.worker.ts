/**
 * The writer's thread. Collects batches and commits them when the oldest row has waited for the flush interval, when enough rows or bytes are
 * waiting, or when a read waits for them.
 *
 * If a commit fails (full disk), its rows are kept and the commit is retried every second.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import type { CallPatch, GatewayRef } from "./call-log.ts";
import { CallWriter } from "./call-writer.ts";
import { releaseMemory, type RowBatch } from "./row-batch.ts";
import type { CallSelection } from "./selection.ts";
import type { WriterMessage, WriterOptions, WriterReport } from "./worker-messages.ts";
import { answerRequest } from "./worker-requests.ts";

/** Rows in one transaction; more would be hardly faster and make reads wait longer. */
const MAX_ROWS_PER_COMMIT = 1000;
/** Bodies in one transaction; their shared memory is needed for the next calls. */
const MAX_BYTES_PER_COMMIT = 2 * 1024 * 1024;
const RETRY_MS = 1000;
const CLOSE_ATTEMPTS = 3;

if (parentPort === null) throw new Error("this module runs in a worker thread");
const port = parentPort;
const options = workerData as WriterOptions;
const writer = new CallWriter(options);

/** Stay packed until they are written, so that unpacked values are short-lived. */
let waiting: RowBatch[] = [];
let waitingRows = 0;
let waitingBytes = 0;
let position = 0;
let timer: NodeJS.Timeout | undefined;
/** The last commit failed: the timer retries it, new rows do not. */
let isFailing = false;
let isTrimming = false;

function isBatchFull(): boolean {
  return waitingRows >= MAX_ROWS_PER_COMMIT || waitingBytes >= MAX_BYTES_PER_COMMIT;
}

function report(message: WriterReport): void {
  port.postMessage(message);
}

function reportFailure(error: unknown): void {
  report({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
}

function reportSize(): void {
  report({ kind: "size", bytes: writer.bytes, removed: writer.removed });
}

/** Throws if the commit failed; then the rows are kept and the next attempt is scheduled. */
function commit(): void {
  clearTimeout(timer);
  timer = undefined;
  if (waiting.length === 0) return;
  try {
    writer.write(waiting);
  } catch (error) {
    isFailing = true;
    timer = setTimeout(tryCommit, RETRY_MS);
    reportFailure(error);
    throw error;
  }
  for (const { memory } of waiting) releaseMemory(memory);
  waiting = [];
  waitingRows = 0;
  waitingBytes = 0;
  isFailing = false;
  // Before the rows are reported as committed, so that a read that waits for them finds quotas applied.
  void trim();
  report({ kind: "committed", position });
}

function tryCommit(): void {
  try {
    commit();
  } catch {
    // Reported, and scheduled again.
  }
}

/** Applies quotas and the size limit, one chunk at a time. Never throws: a failure is reported, and the next commit tries again. */
async function trim(): Promise<void> {
  if (isTrimming) return;
  isTrimming = true;
  try {
    while (writer.trim()) {
      reportSize();
      await sleep(1);
    }
    reportSize();
  } catch (error) {
    reportFailure(error);
  } finally {
    isTrimming = false;
  }
}

async function close(): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      commit();
      break;
    } catch (error) {
      if (attempt === CLOSE_ATTEMPTS) throw error;
      await sleep(RETRY_MS);
    }
  }
  writer.close();
}

const handlers = {
  edit: (gateway: GatewayRef, id: string, patch: CallPatch) => writer.edit(gateway, id, patch),
  deleteMatching: (gateway: GatewayRef, selection: CallSelection) =>
    writer.deleteMatching(gateway, selection),
  deleteIds: (gateway: GatewayRef, ids: readonly string[]) => writer.deleteIds(gateway, ids),
  dropGateway: (gateway: GatewayRef) => writer.dropGateway(gateway),
  /** Returns the days that cannot be read. */
  expire(now: number, maxAgeDays: number): string[] {
    writer.expire(now, maxAgeDays);
    // The limit may be lower than at the last start, or a crash may have left it exceeded.
    void trim();
    return writer.unreadableDays;
  },
  close,
};

port.on("message", (message: WriterMessage) => {
  switch (message.kind) {
    case "rows":
      waiting.push(message.batch);
      waitingRows += message.batch.rows;
      waitingBytes += message.bodyBytes;
      position = message.position;
      if (isBatchFull() && !isFailing) tryCommit();
      else timer ??= setTimeout(tryCommit, options.flushIntervalMs);
      break;
    case "flush":
      tryCommit();
      break;
    case "quota":
      tryCommit();
      writer.setQuota(message.gateway, message.quota);
      void trim();
      break;
    case "request":
      // A change sees every row that was sent before it.
      tryCommit();
      void answerRequest(port, message, handlers);
      break;
  }
});

/**
 * The writer's thread: gathers batches and commits them when the oldest row has waited long enough, when enough rows have gathered, or
 * when someone waits for them.
 *
 * A commit that fails (disk full) keeps its rows and is tried again; meanwhile the main thread's queue fills up and slows callers down.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import type { CallPatch, CallRecord, CallSelection, GatewayRef } from "./call-log.ts";
import { CallWriter } from "./call-writer.ts";
import type { WriterMessage, WriterOptions, WriterReport } from "./worker-messages.ts";
import { answerQuestion } from "./worker-requests.ts";
import { releaseMemory, type RowBatch, unpackBatch } from "./row-batch.ts";

/** Rows in one transaction; more would gain little speed and make reads wait longer. */
const MAX_ROWS_PER_COMMIT = 1000;
/** Bodies in one transaction: their memory is needed again soon. */
const MAX_BYTES_PER_COMMIT = 2 * 1024 * 1024;
const RETRY_MS = 1000;
const CLOSE_ATTEMPTS = 3;

if (parentPort === null) throw new Error("runs as a worker only");
const port = parentPort;
const options = workerData as WriterOptions;
const writer = new CallWriter(options);

/** Kept packed until they are written, so that what is unpacked is short-lived. */
let waiting: RowBatch[] = [];
let waitingRows = 0;
let waitingBytes = 0;
let position = 0;
let timer: NodeJS.Timeout | undefined;
/** The last commit failed: the timer tries again, new rows do not. */
let isFailing = false;
let isTrimming = false;

function* unpackWaiting(): Generator<CallRecord, void> {
  for (const batch of waiting) yield* unpackBatch(batch);
}

function isEnough(): boolean {
  return waitingRows >= MAX_ROWS_PER_COMMIT || waitingBytes >= MAX_BYTES_PER_COMMIT;
}

function report(message: WriterReport): void {
  port.postMessage(message);
}

function reportSize(): void {
  report({ kind: "size", bytes: writer.bytes, removed: writer.removed });
}

/** Throws when the commit failed; the rows stay and the next attempt is scheduled. */
function commit(): void {
  clearTimeout(timer);
  timer = undefined;
  if (waiting.length === 0) return;
  try {
    writer.write({ [Symbol.iterator]: unpackWaiting });
    for (const { memory } of waiting) releaseMemory(memory);
    waiting = [];
    waitingRows = 0;
    waitingBytes = 0;
    isFailing = false;
    // Before the rows are reported as written, so that whoever reads them finds quotas kept; it never throws.
    void trimOn();
    report({ kind: "committed", upTo: position });
  } catch (error) {
    isFailing = true;
    timer = setTimeout(tryCommit, RETRY_MS);
    report({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

function tryCommit(): void {
  try {
    commit();
  } catch {
    // Reported, and scheduled again.
  }
}

/** Brings the files within quotas and size limit, a chunk at a time; a failure is reported, and the next commit tries again. */
async function trimOn(): Promise<void> {
  if (isTrimming) return;
  isTrimming = true;
  try {
    while (writer.trim()) {
      reportSize();
      await sleep(1);
    }
    reportSize();
  } catch (error) {
    report({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
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
  expire(now: number, maxAgeDays: number) {
    const expired = writer.expire(now, maxAgeDays);
    // Also after a start with a lower limit, or one that a crash left exceeded.
    void trimOn();
    return expired;
  },
  close,
};

port.on("message", (message: WriterMessage) => {
  switch (message.kind) {
    case "rows":
      waiting.push(message.batch);
      waitingRows += message.batch.rows;
      waitingBytes += message.bodyBytes;
      position = message.upTo;
      if (isEnough() && !isFailing) tryCommit();
      else timer ??= setTimeout(tryCommit, options.flushIntervalMs);
      break;
    case "flush":
      tryCommit();
      break;
    case "quota":
      tryCommit();
      writer.setQuota(message.gateway, message.quota);
      void trimOn();
      break;
    case "ask":
      // A change sees every row sent before it.
      tryCommit();
      void answerQuestion(port, message, handlers);
      break;
  }
});

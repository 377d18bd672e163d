/**
 * The writer's thread for PostgreSQL. Collects batches and commits them when the oldest row has waited for the flush interval, when enough rows
 * or bytes are waiting, or when a read waits for them. Operations run one after another, in the order of the messages.
 *
 * If a commit fails (server unavailable), its rows are kept and the commit is retried every second.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { releaseMemory } from "../row-batch.ts";
import type { WriterMessage, WriterReport } from "../worker-messages.ts";
import { answerRequest } from "../worker-requests.ts";
import type { PostgresWriterThreadOptions } from "./postgres-call-log.ts";
import { type PositionedBatch, PostgresWriter } from "./postgres-writer.ts";

/** A commit of this many rows begins without waiting. */
const MIN_ROWS = 1000;
/** Rows in one transaction; more would be hardly faster and make reads wait longer. */
const MAX_ROWS = 5000;
/** Bodies in one transaction; their shared memory is needed for the next calls. */
const MIN_BYTES = 2 * 1024 * 1024;
const MAX_BYTES = 8 * 1024 * 1024;
const RETRY_MS = 1000;
const CLOSE_ATTEMPTS = 3;
/** No further attempt follows one that ends later: the server does not answer. */
const MAX_CLOSE_MS = 3000;

interface WaitingBatch extends PositionedBatch {
  readonly bodyBytes: number;
}

if (parentPort === null) throw new Error("this module runs in a worker thread");
const port = parentPort;
const options = workerData as PostgresWriterThreadOptions;
const writer = new PostgresWriter(options);

let waiting: WaitingBatch[] = [];
let waitingRows = 0;
let waitingBytes = 0;
/** Position of the last row received. */
let received = 0;
let timer: NodeJS.Timeout | undefined;
/** The last commit failed: the timer retries it, new rows do not. */
let isFailing = false;
let isCommitScheduled = false;
let isTrimScheduled = false;
/** The end of the last operation. */
let last: Promise<unknown> = Promise.resolve();

function report(message: WriterReport): void {
  port.postMessage(message);
}

function reportFailure(error: unknown): void {
  report({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
}

function reportSize(): void {
  report({ kind: "size", bytes: writer.bytes, removed: writer.removed });
}

/** Operations do not overlap; the failure of one does not stop the next. */
function enqueue(operation: () => Promise<unknown>): void {
  // Every operation reports its own failure.
  last = last.then(operation).catch(() => undefined);
}

function isBatchFull(): boolean {
  return waitingRows >= MIN_ROWS || waitingBytes >= MIN_BYTES;
}

/** Commits the rows received so far; rows that arrive meanwhile belong to later operations. */
function scheduleCommit(): void {
  const limit = received;
  isCommitScheduled = true;
  enqueue(async () => {
    isCommitScheduled = false;
    // Reported, and scheduled again.
    await commit(limit).catch(() => undefined);
    if (isBatchFull() && !isFailing && !isCommitScheduled) scheduleCommit();
  });
}

/** Throws if the commit failed; then the rows are kept and the next attempt is scheduled. */
async function commit(limit: number): Promise<void> {
  clearTimeout(timer);
  timer = undefined;
  for (let batches = takeUpTo(limit); batches.length > 0; batches = takeUpTo(limit)) {
    try {
      await writer.write(batches);
    } catch (error) {
      putBack(batches);
      isFailing = true;
      clearTimeout(timer);
      timer = setTimeout(scheduleCommit, RETRY_MS);
      reportFailure(error);
      throw error;
    }
    for (const { batch } of batches) releaseMemory(batch.memory);
    isFailing = false;
    // Before the rows are reported as committed, so that a read that waits for them finds quotas applied.
    await trim();
    report({ kind: "committed", position: batches.at(-1)?.position ?? 0 });
  }
}

/** The oldest batches of one transaction. */
function takeUpTo(limit: number): WaitingBatch[] {
  let rows = 0;
  let bytes = 0;
  let count = 0;
  for (const { batch, bodyBytes, position } of waiting) {
    const isTooMuch = rows + batch.rows > MAX_ROWS || bytes + bodyBytes > MAX_BYTES;
    if (position > limit || (count > 0 && isTooMuch)) break;
    rows += batch.rows;
    bytes += bodyBytes;
    count += 1;
  }
  const taken = waiting.slice(0, count);
  waiting = waiting.slice(count);
  waitingRows -= rows;
  waitingBytes -= bytes;
  return taken;
}

function putBack(batches: readonly WaitingBatch[]): void {
  waiting = [...batches, ...waiting];
  for (const { batch, bodyBytes } of batches) {
    waitingRows += batch.rows;
    waitingBytes += bodyBytes;
  }
}

/** Applies quotas and the size limit: a chunk now, the others between later operations. Never throws; the next commit tries again. */
async function trim(): Promise<void> {
  try {
    if (await writer.trim()) scheduleTrim();
    reportSize();
  } catch (error) {
    reportFailure(error);
  }
}

function scheduleTrim(): void {
  if (isTrimScheduled) return;
  isTrimScheduled = true;
  enqueue(async () => {
    isTrimScheduled = false;
    await trim();
  });
}

async function close(): Promise<void> {
  const startedAt = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      await commit(received);
      break;
    } catch (error) {
      if (attempt === CLOSE_ATTEMPTS || performance.now() - startedAt >= MAX_CLOSE_MS) throw error;
      await sleep(RETRY_MS);
    }
  }
  clearTimeout(timer);
  await writer.close();
}

const handlers = {
  async expire(now: number | null, maxAgeDays: number): Promise<void> {
    await writer.expire(now, maxAgeDays);
    // The limit may be lower than at the last start, or a crash may have left it exceeded.
    scheduleTrim();
  },
  reconnect: () => writer.reconnect(),
  close,
};

port.on("message", (message: WriterMessage) => {
  switch (message.kind) {
    case "rows": {
      const { batch, bodyBytes, position } = message;
      waiting.push({ batch, bodyBytes, position });
      waitingRows += batch.rows;
      waitingBytes += bodyBytes;
      received = position;
      if (isBatchFull() && !isFailing && !isCommitScheduled) scheduleCommit();
      else timer ??= setTimeout(scheduleCommit, options.flushIntervalMs);
      break;
    }
    case "flush":
      scheduleCommit();
      break;
    case "quota":
      scheduleCommit();
      enqueue(() => Promise.resolve(writer.setQuota(message.gateway, message.quota)));
      scheduleTrim();
      break;
    case "request":
      // An expiry may take long, and uses a connection of its own. A new connection is for operations that wait for the old one.
      if (message.method === "expire" || message.method === "reconnect")
        void answerRequest(port, message, handlers);
      else enqueue(() => answerRequest(port, message, handlers));
      break;
  }
});

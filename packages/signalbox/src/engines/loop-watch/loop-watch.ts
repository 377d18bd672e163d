/** The side of the main thread: counts, and reports when the watching thread asks it to. The README states the invariants. */
import { url as debuggerUrl } from "node:inspector";
import { Worker } from "node:worker_threads";
import { CALL, EQUAL_READINGS, IS_DEBUGGED, TICKS, TICK_MS } from "./shared-cells.ts";

interface LoopReports {
  /** Called on the stack of the code that blocks. */
  readonly onBlocked: (blockedMs: number) => void;
  /** A block that was reported has ended. */
  readonly onEnd: (blockedMs: number) => void;
}

/** Less than any block that the thread asks about. */
const SURELY_BLOCKED_MS = (TICK_MS * EQUAL_READINGS) / 2;

type Holder = { [CALL]?: (() => void) | undefined };

export class LoopWatch {
  readonly #cells = new Int32Array(new SharedArrayBuffer(8));
  readonly #reports: LoopReports;
  readonly #timer: NodeJS.Timeout;
  readonly #thread: Worker;
  #tickedAt = performance.now();
  #hasReported = false;

  /** One of a process. */
  constructor(reports: LoopReports) {
    this.#reports = reports;
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
    (globalThis as Holder)[CALL] = () => this.#report();
    const ending = import.meta.url.endsWith(".ts") ? "ts" : "js";
    this.#thread = new Worker(new URL(`./loop-watch.worker.${ending}`, import.meta.url), {
      name: "loop-watch",
      workerData: this.#cells,
      // None of those of the process, for example the reports of `dev`.
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: 1 },
    });
    this.#thread.unref();
    // Without the thread, nothing is reported.
    this.#thread.on("error", () => undefined);
  }

  close(): void {
    clearInterval(this.#timer);
    (globalThis as Holder)[CALL] = undefined;
    void this.#thread.terminate();
  }

  #tick(): void {
    const now = performance.now();
    const blockedMs = now - this.#tickedAt;
    this.#tickedAt = now;
    Atomics.add(this.#cells, TICKS, 1);
    Atomics.store(this.#cells, IS_DEBUGGED, debuggerUrl() === undefined ? 0 : 1);
    if (!this.#hasReported) return;
    this.#hasReported = false;
    this.#reports.onEnd(blockedMs);
  }

  #report(): void {
    const blockedMs = performance.now() - this.#tickedAt;
    // The block has ended before the question arrived: whatever runs now is not to blame.
    if (blockedMs < SURELY_BLOCKED_MS) return;
    this.#hasReported = true;
    this.#reports.onBlocked(blockedMs);
  }
}

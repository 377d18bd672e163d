/**
 * Handles uncaught exceptions and unhandled rejections: logs and counts them, and stops the server gracefully if its own code was interrupted
 * (see `judge-uncaught.ts`).
 *
 * Invariants:
 * 1. Only name, message, code and stack of an error are logged, truncated: other properties may contain a whole request.
 * 2. At most `LINES_PER_WINDOW` lines per minute are logged, then one line with the number of the others: errors must not fill the disk.
 * 3. No function throws, and a failed write of the log is ignored: both would be reported here again.
 */
import { join, sep } from "node:path";
import { inspect } from "node:util";
import type { Registry } from "prom-client";
import { mayContinue, type OwnCode, type UncaughtKind } from "./judge-uncaught.ts";
import type { Logger } from "./logger.ts";
import { registerMetric } from "./instruments.ts";

const LINES_PER_WINDOW = 10;
const WINDOW_MS = 60_000;
const MAX_TEXT = 4096;
/** Enough to include the outermost frame: the default of 10 frames often ends inside server code. */
const STACK_FRAMES = 30;

const OWN_FOLDER = join(import.meta.dirname, "..") + sep;

export interface UncaughtErrorsOptions {
  readonly logger: Logger;
  /** Returns true for storage errors that end by themselves. */
  readonly isTransient: OwnCode["isTransient"];
  readonly isInTurn: OwnCode["isInTurn"];
  /** Must stop the process gracefully: its state in memory is unknown. Called once. */
  readonly onInterrupted: (error: unknown) => void;
  readonly ownFolder?: string;
}

export class UncaughtErrors {
  readonly #options: UncaughtErrorsOptions;
  readonly #own: OwnCode;
  readonly #counts: Record<UncaughtKind, number> = { exception: 0, rejection: 0 };
  #logged = 0;
  #suppressed = 0;
  #isInterrupted = false;

  constructor(options: UncaughtErrorsOptions) {
    this.#options = options;
    const { isInTurn, isTransient, ownFolder: folder = OWN_FOLDER } = options;
    this.#own = { folder, isTransient, isInTurn };
  }

  /** Installs the handlers. Without them Node.js ends the process. */
  install(): void {
    Error.stackTraceLimit = Math.max(Error.stackTraceLimit, STACK_FRAMES);
    process.on("uncaughtException", (error) => this.take("exception", error));
    process.on("unhandledRejection", (reason) => this.take("rejection", reason));
    for (const stream of [process.stdout, process.stderr]) {
      // The reader of the output has exited, or its disk is full.
      stream.on("error", () => undefined);
    }
  }

  register(registry: Registry): void {
    registerMetric(
      registry,
      "counter",
      { name: "signalbox_uncaught_errors_total", help: "Uncaught exceptions and unhandled rejections." },
      () => Object.entries(this.#counts).map(([kind, value]) => ({ value, labels: { kind } })),
    );
  }

  take(kind: UncaughtKind, error: unknown): void {
    this.#counts[kind] += 1;
    if (mayContinue(kind, error, this.#own)) {
      this.#log(kind, error);
      return;
    }
    if (this.#isInterrupted) return;
    this.#isInterrupted = true;
    this.#options.logger.fatal({ err: describe(error), kind }, "internal error: the server stops");
    this.#options.onInterrupted(error);
  }

  #log(kind: UncaughtKind, error: unknown): void {
    if (this.#logged >= LINES_PER_WINDOW) {
      this.#suppressed += 1;
      return;
    }
    if (this.#logged === 0) setTimeout(() => this.#endWindow(), WINDOW_MS).unref();
    this.#logged += 1;
    const message =
      kind === "exception"
        ? "uncaught exception; the server continues"
        : "unhandled rejection; the server continues";
    this.#options.logger.error({ err: describe(error), kind }, message);
  }

  #endWindow(): void {
    const suppressed = this.#suppressed;
    this.#logged = 0;
    this.#suppressed = 0;
    if (suppressed > 0)
      this.#options.logger.error(
        { suppressed },
        "further uncaught errors in the last minute were not logged",
      );
  }
}

function describe(error: unknown): Record<string, unknown> {
  try {
    if (!(error instanceof Error)) return { type: typeof error, message: cut(inspect(error, { depth: 1 })) };
    const { code } = error as { readonly code?: unknown };
    return {
      type: error.name,
      message: cut(error.message),
      stack: cut(String(error.stack)),
      ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    };
  } catch {
    // A getter of the error threw.
    return { type: "unknown", message: "the error cannot be read" };
  }
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)} …`;
}

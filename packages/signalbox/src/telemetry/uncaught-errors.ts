/**
 * What the server does about exceptions that nobody caught and rejections that nobody handled: logs and counts them, goes on where nothing of
 * its own was interrupted, and otherwise has itself stopped in order (`judge-uncaught.ts` has the reasons).
 *
 * Invariants:
 * 1. Only what is known of every error is logged (name, message, code, stack), cut to a length: an error object may carry a whole request.
 * 2. At most so many lines a minute, then one that counts the rest: a flood of errors must not fill the disk.
 * 3. Nothing here throws, and a log that cannot be written is no error: it would come back here for ever.
 */
import { join, sep } from "node:path";
import { inspect } from "node:util";
import type { Registry } from "prom-client";
import { isSound, type OwnCode, type UncaughtKind } from "./judge-uncaught.ts";
import type { Logger } from "./logger.ts";
import { registerMetric } from "./instruments.ts";

const LINES_PER_WINDOW = 10;
const WINDOW_MS = 60_000;
const MAX_TEXT = 4096;
/** Enough to see who called: the default of 10 frames often ends inside our own code. */
const STACK_FRAMES = 30;

const OWN_FOLDER = join(import.meta.dirname, "..") + sep;

export interface UncaughtErrorsOptions {
  readonly logger: Logger;
  /** True for failures of storage that pass by themselves. */
  readonly isPassing: OwnCode["isPassing"];
  /** What memory holds can no longer be trusted; must end the process, after it has finished what runs. Called once. */
  readonly onUnsound: (error: unknown) => void;
  readonly ownFolder?: string;
}

export class UncaughtErrors {
  readonly #options: UncaughtErrorsOptions;
  readonly #own: OwnCode;
  readonly #counts: Record<UncaughtKind, number> = { exception: 0, rejection: 0 };
  #logged = 0;
  #suppressed = 0;
  #isUnsound = false;

  constructor(options: UncaughtErrorsOptions) {
    this.#options = options;
    this.#own = { folder: options.ownFolder ?? OWN_FOLDER, isPassing: options.isPassing };
  }

  /** From here on they no longer end the process by themselves. */
  install(): void {
    Error.stackTraceLimit = Math.max(Error.stackTraceLimit, STACK_FRAMES);
    process.on("uncaughtException", (error) => this.take("exception", error));
    process.on("unhandledRejection", (reason) => this.take("rejection", reason));
    for (const stream of [process.stdout, process.stderr]) {
      // Whoever read our output has gone, or its disk is full. There is nobody left to tell.
      stream.on("error", () => undefined);
    }
  }

  register(registry: Registry): void {
    registerMetric(
      registry,
      "signalbox_uncaught_errors_total",
      "Uncaught exceptions and unhandled rejections.",
      "counter",
      () => Object.entries(this.#counts).map(([kind, value]) => ({ value, labels: { kind } })),
    );
  }

  take(kind: UncaughtKind, error: unknown): void {
    this.#counts[kind] += 1;
    const isUnsound = !isSound(kind, error, this.#own);
    if (!isUnsound) {
      this.#log(kind, error);
      return;
    }
    if (this.#isUnsound) return;
    this.#isUnsound = true;
    this.#options.logger.fatal({ err: describe(error), kind }, "an error of the server itself; it stops");
    this.#options.onUnsound(error);
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
        ? "nobody caught this exception; the server goes on"
        : "nobody handled this rejection; the server goes on";
    this.#options.logger.error({ err: describe(error), kind }, message);
  }

  #endWindow(): void {
    const suppressed = this.#suppressed;
    this.#logged = 0;
    this.#suppressed = 0;
    if (suppressed > 0)
      this.#options.logger.error({ suppressed }, "more errors that nobody caught, in the last minute");
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
    // A getter of the thrown object threw in turn.
    return { type: "unknown", message: "the error cannot be read" };
  }
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)} …`;
}

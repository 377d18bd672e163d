/** `ctx` of a worker's handlers, and the work that outlives their answers. */
import type { Logger } from "../../telemetry/logger.ts";

export interface ExecutionContext {
  waitUntil(work: unknown): void;
  passThroughOnException(): void;
  readonly props: unknown;
  readonly exports: Readonly<Record<string, unknown>>;
}

/** Work of all handlers. A stop waits for it within the grace period. */
export class BackgroundWork {
  readonly #running = new Set<Promise<unknown>>();
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(work: unknown): void {
    const settled: Promise<unknown> = Promise.resolve(work)
      .catch((err: unknown) => this.#logger.error({ err }, "work that a worker passed to waitUntil failed"))
      .finally(() => this.#running.delete(settled));
    this.#running.add(settled);
  }

  /** Resolves when nothing runs any more, or after `timeoutMs`. */
  async finish(timeoutMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    const all = async () => {
      while (this.#running.size > 0) await Promise.all(this.#running);
    };
    await Promise.race([all(), timeout]);
    clearTimeout(timer);
  }
}

export class HandlerContext implements ExecutionContext {
  readonly props: unknown;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly #work: BackgroundWork;
  /** True after `passThroughOnException`: if the handler throws, the static files answer. */
  passesThrough = false;

  constructor(work: BackgroundWork, exports: Readonly<Record<string, unknown>>, props: unknown = {}) {
    this.#work = work;
    this.exports = exports;
    this.props = props;
  }

  waitUntil(work: unknown): void {
    this.#work.add(work);
  }

  passThroughOnException(): void {
    this.passesThrough = true;
  }
}

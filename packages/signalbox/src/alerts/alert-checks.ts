/** Checks all rules and sends the notices that are due, one run at a time. A run does not wait for receivers: rules are checked meanwhile. */
import type { Logger } from "../telemetry/logger.ts";
import type { NoticeOutbox } from "./notice-outbox.ts";

export class AlertChecks {
  readonly #checks: { run(): Promise<void> };
  readonly #outbox: NoticeOutbox;
  readonly #logger: Logger;
  #running: Promise<void> | null = null;

  constructor(checks: { run(): Promise<void> }, outbox: NoticeOutbox, logger: Logger) {
    this.#checks = checks;
    this.#outbox = outbox;
    this.#logger = logger;
  }

  /** Resolves when the run that is under way, or a new one, has ended. Errors are logged: the next run tries again. */
  run(): Promise<void> {
    this.#running ??= this.#runOnce().finally(() => (this.#running = null));
    return this.#running;
  }

  async #runOnce(): Promise<void> {
    try {
      await this.#checks.run();
      this.#outbox.sendDue().catch((error: unknown) => this.#report(error));
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error: unknown): void {
    this.#logger.error({ err: error }, "alerts could not be checked; trying again");
  }
}

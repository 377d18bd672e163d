/**
 * The running worker: its program with its bindings. Calls the handlers, and gives each event its context.
 *
 * A handler that throws is an error of the program: the client gets `worker_failed` without the reason, the log has it.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Assets } from "../assets/assets.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type BackgroundWork, HandlerContext } from "./execution-context.ts";
import type { WorkerProgram } from "./worker-program.ts";

export interface RuntimeParts {
  readonly env: Readonly<Record<string, unknown>>;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly work: BackgroundWork;
  readonly assets: Assets | null;
  readonly logger: Logger;
}

export interface ScheduledEvent {
  readonly cron: string;
  readonly scheduledTime: number;
}

export class WorkerRuntime {
  readonly #program: WorkerProgram;
  readonly #parts: RuntimeParts;

  constructor(program: WorkerProgram, parts: RuntimeParts) {
    this.#program = program;
    this.#parts = parts;
  }

  get program(): WorkerProgram {
    return this.#program;
  }

  async fetch(request: Request): Promise<Response> {
    const { assets } = this.#parts;
    if (!this.#program.has("fetch")) return assets?.fetch(request) ?? notFound();
    const ctx = this.createContext();
    let answer: unknown;
    try {
      answer = await this.#program.run("fetch", request, this.#parts.env, ctx);
    } catch (error) {
      // An error of the request itself, such as a body that is too large, is the client's.
      if (error instanceof SignalboxError) throw error;
      if (!request.signal.aborted)
        this.#parts.logger.error({ err: error, url: request.url }, "the fetch handler of the worker failed");
      if (ctx.passesThrough) return assets?.fetch(request.url) ?? notFound();
      throw new SignalboxError("worker_failed", { cause: error });
    }
    if (answer instanceof Response) return answer;
    this.#parts.logger.error(
      { url: request.url },
      "the fetch handler of the worker did not return a Response",
    );
    throw new SignalboxError("worker_failed");
  }

  /** False if the worker has no such handler. */
  async scheduled(event: ScheduledEvent): Promise<boolean> {
    if (!this.#program.has("scheduled")) return false;
    const controller = { ...event, type: "scheduled", noRetry: () => undefined };
    await this.#program.run("scheduled", controller, this.#parts.env, this.createContext());
    return true;
  }

  /** False if the worker has no such handler. */
  async email(message: object): Promise<boolean> {
    if (!this.#program.has("email")) return false;
    await this.#program.run("email", message, this.#parts.env, this.createContext());
    return true;
  }

  createContext(props: unknown = {}): HandlerContext {
    return new HandlerContext(this.#parts.work, this.#parts.exports, props);
  }
}

function notFound(): never {
  throw new SignalboxError("not_found");
}

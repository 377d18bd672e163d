/**
 * One place for a process of the supervisor, and the process that has it at present.
 *
 *   starting → serving → leaving → ended
 *   starting → ended, serving → ended: by itself
 *   ended → waiting → starting: after a delay that grows with each end
 */
import cluster, { type Worker } from "node:cluster";
import { constants } from "node:os";
import type { ProcessPlace } from "../../config/index.ts";
import type { ProcessState } from "../../http/index.ts";
import { rescueConnections } from "./handed-connections.ts";
import { type FromProcess, PLACE_VARIABLE, type ToProcess } from "./messages.ts";

/** The exit code; 128 and the number of the signal for a process that was killed. */
export type Ending = { readonly code: number; readonly reason: string };

export interface ProcessEvents {
  readonly onMessage: (message: FromProcess) => void;
  /** Also if the end was wanted. */
  readonly onEnd: (ending: Ending) => void;
  readonly hasOthers: () => boolean;
}

/** Delays of restarts: a process that dies at once must not use a core for dying, and one that dies once a day must be back soon. */
const MIN_DELAY_MS = 1000;
const MAX_DELAY_MS = 30_000;
/** A process that has lived for so long is not dying again and again. */
const STEADY_MS = 60_000;

export class SupervisedProcess {
  readonly number: number;
  readonly #events: ProcessEvents;
  state: ProcessState = "waiting";
  restarts = 0;
  /** The end is wanted: the process is not started again by itself. */
  isLeaving = false;
  /** How the process ended; null while there is one. */
  ending: Ending | null = null;
  #worker: Worker | null = null;
  #delayMs = MIN_DELAY_MS;
  #startedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #served = Promise.withResolvers<Ending | null>();
  #ended = Promise.withResolvers<Ending>();

  constructor(number: number, events: ProcessEvents) {
    this.number = number;
    this.#events = events;
  }

  get isAlive(): boolean {
    return this.#worker !== null;
  }

  /** Whether it accepts connections. The end of its channel is noticed before its own end. */
  get isServing(): boolean {
    return this.state === "serving" && this.#worker?.isConnected() === true;
  }

  /** Resolves when the process serves, with null, or when it has ended before. */
  start(ports: Omit<ProcessPlace, "number">, isFirst: boolean): Promise<Ending | null> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.state = "starting";
    this.isLeaving = false;
    this.ending = null;
    this.#startedAt = performance.now();
    this.#served = Promise.withResolvers();
    this.#ended = Promise.withResolvers();
    const place: ProcessPlace = { number: this.number, ...ports };
    const environment = {
      [PLACE_VARIABLE]: JSON.stringify(place),
      // It would lose the channel; it has the settings of the supervisor, which was restarted with them.
      SIGNALBOX_NO_REEXEC: "1",
      ...(isFirst ? {} : { SIGNALBOX_RESTARTED: "1" }),
    };
    try {
      this.#watch(cluster.fork(environment));
    } catch (error) {
      // The system has no room for another process.
      const reason = error instanceof Error ? error.message : String(error);
      setImmediate(() => this.#end({ code: 1, reason }));
    }
    return this.#served.promise;
  }

  #watch(worker: Worker): void {
    this.#worker = worker;
    rescueConnections(worker, this.#events.hasOthers);
    worker.on("error", (error) => {
      // Otherwise: a message to a process that has just ended; its end is reported by itself.
      if (worker.process.pid === undefined) this.#end({ code: 1, reason: error.message });
    });
    worker.on("message", (message: FromProcess) => this.#onMessage(message));
    worker.once("exit", (code: number | null, signal: NodeJS.Signals | null) =>
      this.#end(
        signal === null
          ? { code: code ?? 1, reason: `exit code ${code}` }
          : { code: 128 + (constants.signals[signal] ?? 0), reason: signal },
      ),
    );
  }

  /** Resolves when it has ended. */
  stop(isReplaced: boolean): Promise<Ending | null> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#worker === null) return Promise.resolve(null);
    this.isLeaving = true;
    // A process that stops with all others accepts connections until load balancers have noticed.
    if (isReplaced) this.state = "leaving";
    this.send({ kind: "stop", isReplaced });
    return this.#ended.promise;
  }

  /** Starts it after the delay of its last ends. Returns the delay. */
  startLater(start: () => void): number {
    if (performance.now() - this.#startedAt >= STEADY_MS) this.#delayMs = MIN_DELAY_MS;
    const delayMs = this.#delayMs;
    this.#delayMs = Math.min(2 * delayMs, MAX_DELAY_MS);
    this.restarts += 1;
    this.#timer = setTimeout(start, delayMs);
    return delayMs;
  }

  send(message: ToProcess): void {
    if (this.#worker?.isConnected() === true) this.#worker.send(message, () => undefined);
  }

  kill(): void {
    this.#worker?.process.kill("SIGKILL");
  }

  #onMessage(message: FromProcess): void {
    if (message.kind === "serving") {
      if (this.state === "starting") this.state = "serving";
      this.#served.resolve(null);
    } else if (message.kind === "leaving") {
      this.send({ kind: "goodbye" });
    }
    this.#events.onMessage(message);
  }

  #end(ending: Ending): void {
    this.#worker = null;
    this.state = "waiting";
    this.ending = ending;
    this.#served.resolve(ending);
    this.#ended.resolve(ending);
    this.#events.onEnd(ending);
  }
}

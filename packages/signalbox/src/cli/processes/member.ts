/**
 * One of several processes, as it sees the others: through its supervisor.
 *
 * 1. The supervisor says when to stop, by a message. SIGINT and SIGHUP are for the supervisor: a terminal sends them to all processes.
 * 2. If the supervisor is gone, the channel closes, and the process stops in order.
 * 3. A question to the others ends when the supervisor answers, which it does within a time limit, or when the channel closes.
 */
import cluster, { type Worker } from "node:cluster";
import type { ProcessPlace } from "../../config/index.ts";
import type { RunningServer } from "../../database/sqlite/data-folder.ts";
import type { OwnReport, ProcessReadiness } from "../../http/index.ts";
import type { ProcessGroup, StopManner } from "../../service.ts";
import { mergeMetrics, supervisorMetrics } from "./merge-metrics.ts";
import {
  type FromProcess,
  PLACE_VARIABLE,
  type ProcessReport,
  type Question,
  type ToProcess,
} from "./messages.ts";

const NO_ANSWER = "does not answer";

export class ProcessMember implements ProcessGroup {
  readonly place: ProcessPlace;
  readonly #worker: Worker;
  readonly #asked = new Map<number, (reports: readonly ProcessReport[]) => void>();
  readonly #goodbye = Promise.withResolvers<void>();
  #own: OwnReport | null = null;
  #asks = 0;
  /** Other processes accept the connections. */
  #isLeaving = false;

  private constructor(place: ProcessPlace, worker: Worker, onStop: (manner: StopManner) => void) {
    this.place = place;
    this.#worker = worker;
    // A process that fails to start must end; one that serves is kept by its listeners.
    process.channel?.unref();
    process.on("message", (message: ToProcess) => this.#onMessage(message, onStop));
    // A message to a supervisor that has just ended.
    worker.on("error", () => undefined);
    worker.once("disconnect", () => {
      // Otherwise Node ends the process at once.
      worker.exitedAfterDisconnect = true;
      for (const resolve of this.#asked.values()) resolve([]);
      this.#goodbye.resolve();
      onStop("in order");
    });
    for (const name of ["SIGINT", "SIGHUP"] as const) process.on(name, () => undefined);
    process.on("SIGTERM", () => onStop("in order"));
  }

  /** Null if no supervisor has started this process. Called once. */
  static find(onStop: (manner: StopManner) => void): ProcessMember | null {
    const text = process.env[PLACE_VARIABLE];
    // Not for programs that agents start.
    delete process.env[PLACE_VARIABLE];
    if (text === undefined || cluster.worker === undefined) return null;
    return new ProcessMember(JSON.parse(text) as ProcessPlace, cluster.worker, onStop);
  }

  get number(): number {
    return this.place.number;
  }

  announce(server: RunningServer): void {
    this.#send({ kind: "address", server });
  }

  serving(line: object, welcome: string): void {
    this.#send({ kind: "serving", line, welcome });
  }

  answerWith(own: OwnReport): void {
    this.#own = own;
  }

  async metrics(): Promise<string> {
    const [reports, own = ""] = await Promise.all([this.#ask("metrics"), this.#own?.metrics()]);
    const answers = new Map(
      reports.flatMap(({ process: k, answer }) => (answer === null ? [] : [[k, answer]])),
    );
    answers.set(this.number, own);
    const known = supervisorMetrics(reports, new Set(answers.keys()));
    return mergeMetrics([known, ...[...answers].toSorted(([a], [b]) => a - b).map(([, text]) => text)]);
  }

  async readiness(): Promise<readonly ProcessReadiness[]> {
    let reports = await this.#ask("readiness");
    // The supervisor lets this process leave once another one serves, and may have done so since it made the report: then the report is old for both.
    const isOld = reports.some(({ process: k, state }) => k === this.number && state === "serving");
    if (this.#isLeaving && isOld) reports = await this.#ask("readiness");
    return reports.map(({ process: k, state, answer }) => {
      if (k === this.number) return { process: k, state, problems: this.#problems() };
      const problems = answer === null ? [NO_ANSWER] : (JSON.parse(answer) as string[]);
      return { process: k, state, problems };
    });
  }

  /** The process has stopped: connections that were being handed to it have gone to others when this resolves. */
  async leave(): Promise<void> {
    if (!process.connected) return;
    process.channel?.ref();
    this.#send({ kind: "leaving" });
    await this.#goodbye.promise;
    if (process.connected) process.disconnect();
  }

  #ask(what: Question): Promise<readonly ProcessReport[]> {
    if (!process.connected) return Promise.resolve([]);
    this.#asks += 1;
    const id = this.#asks;
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      this.#send({ kind: "ask", id, what });
    });
  }

  #onMessage(message: ToProcess, onStop: (manner: StopManner) => void): void {
    switch (message.kind) {
      case "stop":
        this.#isLeaving = message.isReplaced;
        onStop(message.isReplaced ? "replaced" : "in order");
        break;
      case "goodbye":
        this.#goodbye.resolve();
        break;
      case "reports":
        this.#asked.get(message.id)?.(message.reports);
        this.#asked.delete(message.id);
        break;
      case "question":
        void this.#answer(message.id, message.what);
        break;
    }
  }

  async #answer(id: number, what: Question): Promise<void> {
    try {
      const text = what === "metrics" ? await this.#own?.metrics() : JSON.stringify(this.#problems());
      if (text !== undefined) this.#send({ kind: "answer", id, text });
    } catch {
      // A process that cannot answer counts as one that does not.
    }
  }

  #problems(): readonly string[] {
    return this.#own?.problems() ?? ["starting"];
  }

  #send(message: FromProcess): void {
    if (this.#worker.isConnected()) this.#worker.send(message, () => undefined);
  }
}

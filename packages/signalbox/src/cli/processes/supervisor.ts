/**
 * `signalbox serve` with several processes: starts them, restarts those that die, replaces them one after the other on SIGHUP, and stops them. Serves
 * nothing itself and loads no part of the service; Node's cluster module accepts the connections here and hands them out in turn.
 * See docs/decisions/0450.
 *
 * 1. The data folder is locked by the supervisor; each process has a folder of its own in it. Commands find the service through the supervisor's.
 * 2. The first process starts alone, so that a wrong setting is reported once. A process that fails in this first start ends all, with its exit code.
 * 3. Later a process that ends by itself is started again with growing delays, whatever its exit code, while another one serves. If none serves,
 *    a configuration error ends all.
 * 4. SIGHUP: a process stops when the one before it serves again. One that does not come back ends the roll-over, and the others go on.
 * 5. SIGTERM, SIGINT: all stop at the same time, in order. The second signal kills them.
 */
import cluster from "node:cluster";
import type { Config, ProcessPlace } from "../../config/index.ts";
import { DataFolder, type RunningServer } from "../../database/sqlite/data-folder.ts";
import { createLogger, type Logger } from "../../telemetry/logger.ts";
import type { CommandContext } from "../command.ts";
import type { FromProcess, ProcessReport, Question } from "./messages.ts";
import { type Ending, SupervisedProcess } from "./supervised-process.ts";

/** Of `main.ts`: the command line or the configuration is invalid. */
const EXIT_CONFIG = 2;
/**
 * How long a process may take to answer a question of another one. Readiness: half of the time limit of common probes, 2 s. Metrics: well below the 10 s
 * of Prometheus.
 */
const ANSWER_MS: Readonly<Record<Question, number>> = { readiness: 1000, metrics: 3000 };

type SuperviseContext = Pick<CommandContext, "out" | "err" | "isJson">;

/** Resolves to the exit code. */
export async function supervise(config: Config, count: number, context: SuperviseContext): Promise<number> {
  const logger = createLogger({ level: config.logLevel, isPretty: context.err.isTTY === true });
  const folder = DataFolder.open(config.dataDir);
  try {
    return await new Supervisor(config, count, context, logger, folder).run();
  } finally {
    folder.close();
  }
}

interface Pending {
  readonly from: SupervisedProcess;
  readonly resolve: (text: string | null) => void;
}

class Supervisor {
  readonly #config: Config;
  readonly #context: SuperviseContext;
  readonly #logger: Logger;
  readonly #folder: DataFolder;
  readonly #processes: readonly SupervisedProcess[];
  readonly #stop = Promise.withResolvers<NodeJS.Signals | Ending>();
  readonly #questions = new Map<number, Pending>();
  #questionCount = 0;
  #server: RunningServer | null = null;
  /** Given to processes instead of port 0 once no process has the chosen one open any more. */
  #ports: Omit<ProcessPlace, "number"> = {};
  #start: { readonly line: object; readonly welcome: string } | null = null;
  #isStarted = false;
  #isStopping = false;
  #rollOver: Promise<void> | null = null;
  #isRollOverWanted = false;

  constructor(config: Config, count: number, context: SuperviseContext, logger: Logger, folder: DataFolder) {
    this.#config = config;
    this.#context = context;
    this.#logger = logger;
    this.#folder = folder;
    this.#processes = Array.from({ length: count }, (_, index): SupervisedProcess => {
      const one: SupervisedProcess = new SupervisedProcess(index + 1, {
        onMessage: (message) => this.#onMessage(one, message),
        onEnd: (ending) => this.#onEnd(one, ending),
        hasOthers: () => this.#hasOthers(one),
      });
      return one;
    });
  }

  async run(): Promise<number> {
    const args = process.argv.slice(2);
    cluster.schedulingPolicy = cluster.SCHED_RR;
    cluster.setupPrimary({
      args,
      // After `--`, Node ignores `--env-file`, which is an option of Signalbox here.
      execArgv: args.some((arg) => arg.startsWith("--env-file"))
        ? [...process.execArgv, "--"]
        : process.execArgv,
    });
    this.#listenToSignals();
    const failure = await this.#startAll();
    if (failure !== null) this.#failToStart(failure);
    else if (!this.#isStopping) this.#allServe();
    const reason = await this.#stop.promise;
    this.#isStopping = true;
    if (typeof reason === "string") this.#logger.info({ reason }, "stopping all processes");
    const endings = await Promise.all(this.#processes.map((one) => one.stop(false)));
    // Processes that a roll-over has started meanwhile see the stop, too.
    await this.#rollOver;
    if (typeof reason !== "string") return reason.code;
    return endings.find((ending) => (ending?.code ?? 0) !== 0)?.code ?? 0;
  }

  async #startAll(): Promise<Ending | null> {
    const [first, ...others] = this.#processes;
    const failure = (await first?.start({}, true)) ?? null;
    if (failure !== null || this.#isStopping) return failure;
    const endings = await Promise.all(others.map((one) => one.start(this.#ports, false)));
    return endings.find((ending) => ending !== null) ?? null;
  }

  #failToStart(failure: Ending): void {
    // A process that ends with an exit code has written why.
    if (failure.code > EXIT_CONFIG)
      this.#logger.error({ reason: failure.reason }, "a process has ended before it served");
    this.#stop.resolve(failure);
  }

  #allServe(): void {
    this.#isStarted = true;
    const { line = {}, welcome = "" } = this.#start ?? {};
    const { out, isJson } = this.#context;
    if (isJson) out.write(`${JSON.stringify({ ...line, pid: process.pid })}\n`);
    else out.write(welcome);
    this.#logger.info({ processes: this.#processes.length }, "all processes serve");
    // One that has ended while others were starting.
    for (const one of this.#processes) if (one.ending !== null) this.#startLater(one, one.ending);
    if (this.#isRollOverWanted) this.#beginRollOver();
  }

  #listenToSignals(): void {
    const end = (name: NodeJS.Signals) => {
      if (this.#isStopping) {
        for (const one of this.#processes) one.kill();
        process.exit(1);
      }
      this.#isStopping = true;
      this.#stop.resolve(name);
    };
    process.on("SIGTERM", end).on("SIGINT", end);
    process.on("SIGHUP", (name) => {
      // The terminal was closed. Supervisors of the system send it as "reload".
      if (this.#context.err.isTTY === true) end(name);
      else this.#beginRollOver();
    });
  }

  #onMessage(from: SupervisedProcess, message: FromProcess): void {
    switch (message.kind) {
      case "address":
        this.#server = { ...message.server, pid: process.pid };
        this.#folder.announce(this.#server);
        break;
      case "serving":
        this.#start ??= message;
        break;
      case "ask":
        void this.#collect(from, message.what).then((reports) =>
          from.send({ kind: "reports", id: message.id, reports }),
        );
        break;
      case "answer":
        if (this.#questions.get(message.id)?.from === from)
          this.#questions.get(message.id)?.resolve(message.text);
        break;
      case "leaving":
        break;
    }
  }

  #onEnd(one: SupervisedProcess, ending: Ending): void {
    for (const { from, resolve } of this.#questions.values()) if (from === one) resolve(null);
    this.#keepPorts();
    if (!this.#isStarted || this.#isStopping || one.isLeaving) return;
    if (ending.code === EXIT_CONFIG && !this.#hasOthers(one)) {
      this.#stop.resolve(ending);
      return;
    }
    this.#startLater(one, ending);
  }

  /** Whether another process accepts connections. */
  #hasOthers(one: SupervisedProcess): boolean {
    return this.#processes.some((other) => other !== one && other.isServing);
  }

  #startLater(one: SupervisedProcess, ending: Ending): void {
    const delayMs = one.startLater(() => void this.#startAgain(one));
    this.#logger.error(
      { process: one.number, reason: ending.reason, restart_in_ms: delayMs },
      "a process has ended by itself",
    );
  }

  async #startAgain(one: SupervisedProcess): Promise<void> {
    const ending = await one.start(this.#ports, false);
    if (ending === null) this.#logger.info({ process: one.number }, "a process serves again");
  }

  /** The last process takes a port that was chosen for port 0 with it: the next ones ask for the same number. */
  #keepPorts(): void {
    if (this.#server === null || this.#processes.some(({ isAlive }) => isAlive)) return;
    const { url, adminUrl = url } = this.#server;
    const port = (address: string) => Number(new URL(address).port);
    this.#ports = {
      ...(this.#config.port === 0 ? { port: port(url) } : {}),
      ...(this.#config.admin?.port === 0 ? { adminPort: port(adminUrl) } : {}),
    };
  }

  #beginRollOver(): void {
    this.#isRollOverWanted = true;
    // One at a time; a signal that comes meanwhile begins another, because what it wants to have read may have been written since.
    if (!this.#isStarted || this.#rollOver !== null || this.#isStopping) return;
    this.#rollOver = this.#replaceAll().finally(() => {
      this.#rollOver = null;
      if (this.#isRollOverWanted) this.#beginRollOver();
    });
  }

  async #replaceAll(): Promise<void> {
    this.#isRollOverWanted = false;
    this.#logger.info({ processes: this.#processes.length }, "replacing the processes one after the other");
    // First those that do not serve: there must always be one that does.
    const order = this.#processes.toSorted(
      (a, b) => Number(a.state === "serving") - Number(b.state === "serving"),
    );
    for (const one of order) {
      if (one.state === "serving" && !this.#hasOthers(one)) {
        this.#logger.error({ process: one.number }, "no other process serves: this one is not replaced");
        return;
      }
      await one.stop(true);
      if (this.#isStopping) return;
      const ending = await one.start(this.#ports, false);
      if (this.#isStopping) return;
      if (ending !== null) {
        this.#logger.error(
          { process: one.number, reason: ending.reason },
          "a process did not come back: the others are not replaced",
        );
        return;
      }
      this.#logger.info({ process: one.number }, "a process was replaced");
    }
    this.#logger.info("all processes were replaced");
  }

  /** What each process knows. The one that asks knows its own answer. */
  #collect(asking: SupervisedProcess, what: Question): Promise<ProcessReport[]> {
    return Promise.all(
      this.#processes.map(async (one) => {
        const { number, state, restarts } = one;
        const isAsked = one !== asking && state === "serving";
        return { process: number, state, restarts, answer: isAsked ? await this.#question(one, what) : null };
      }),
    );
  }

  #question(to: SupervisedProcess, what: Question): Promise<string | null> {
    this.#questionCount += 1;
    const id = this.#questionCount;
    return new Promise((resolve) => {
      const end = (text: string | null) => {
        clearTimeout(timer);
        this.#questions.delete(id);
        resolve(text);
      };
      const timer = setTimeout(() => end(null), ANSWER_MS[what]);
      this.#questions.set(id, { from: to, resolve: end });
      to.send({ kind: "question", id, what });
    });
  }
}

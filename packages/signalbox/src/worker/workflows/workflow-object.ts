/**
 * The object of a workflow instance: its database holds the workflow, its alarm moves it on. Everything that the program does happens while `alarm`
 * runs, so the object stays in memory for it, and a crash in the middle runs the alarm again. So does a failure of the storage: it fails the
 * alarm, which is tried again, and never the workflow. An alarm is set before what it is for: one too many does no harm, and a write that the storage
 * refuses in between leaves nothing that waits for ever.
 *
 * States:  queued → running ⇄ waiting → complete | errored
 *          running → rollingBack → errored
 *          running → waitingForPause → paused → running;  any but the ended ones → terminated, also → rollingBack → terminated;  any → queued by `restart`
 *
 * Before `errored`, and before `terminated` if the caller asks for it, the handlers that undo steps run. They are functions of the program, so a terminated
 * instance is replayed up to its first unfinished step to find them. Replays and waits in the middle do not change `rollingBack`.
 */
import { DurableObject } from "../../agents/index.ts";
import { parseDuration } from "./duration.ts";
import type { HistoryPage } from "./workflow-history.ts";
import { isCloneError, WorkflowRun } from "./workflow-run.ts";
import { describe, WorkflowStep } from "./workflow-step.ts";
import {
  type CronSchedule,
  type Retention,
  type RollbackOutcome,
  type StoredError,
  type WorkflowRow,
  type WorkflowStatus,
  type WorkflowStorage,
  WorkflowStore,
} from "./workflow-store.ts";

export interface WorkflowObjectStorage extends WorkflowStorage {
  setAlarm(time: number): Promise<void>;
  sync(): Promise<void>;
  deleteAll(): Promise<void>;
}

interface ObjectContext {
  readonly storage: WorkflowObjectStorage;
}

/** A workflow of the program. */
export interface WorkflowInstance {
  run(event: WorkflowEvent, step: WorkflowStep): Promise<unknown>;
}

export interface WorkflowEvent {
  readonly payload: unknown;
  readonly timestamp: Date;
  readonly instanceId: string;
  readonly workflowName: string;
  /** Set for an instance that a schedule of the wrangler file created. */
  readonly schedule?: CronSchedule;
}

export interface WorkflowParts {
  /** The name of the export. */
  readonly name: string;
  open(): WorkflowInstance;
}

export interface InstanceStatus {
  readonly status: WorkflowStatus;
  readonly error?: { readonly name: string; readonly message: string };
  readonly output?: unknown;
  /** Set if steps were undone. */
  readonly rollback?: RollbackOutcome;
}

/** From which step an instance is started again. */
export interface RestartFrom {
  readonly name: string;
  /** The n-th step of this name; default 1. */
  readonly count?: number;
  readonly type?: string;
}

/** How long an ended instance can be looked up, unless its creator has set another time. The originals keep 30 days. */
const RETENTION_MS = parseDuration("30 days");
/** A reader of the history waits as long for the next event, then asks again. */
const HISTORY_WAIT_MS = 20_000;
const HISTORY_PAGE = 500;
/** A program that neither ends nor comes to a step has to be left alone at some time. */
const UNWIND_LIMIT_MS = 60_000;
const ENDED: ReadonlySet<WorkflowStatus> = new Set(["complete", "errored", "terminated"]);

/** A class for each workflow of the program: the host constructs objects from the class alone. */
export function createWorkflowClass(parts: WorkflowParts): typeof WorkflowObject {
  return class extends WorkflowObject {
    protected override readonly parts = parts;
  };
}

export class WorkflowObject extends DurableObject {
  protected readonly parts: WorkflowParts | undefined = undefined;
  readonly #storage: WorkflowObjectStorage;
  readonly #store: WorkflowStore;
  #run: WorkflowRun | null = null;
  /** Readers of the history that wait for the next event. */
  readonly #readers = new Set<() => void>();

  constructor(ctx: unknown, env: unknown) {
    super(ctx, env);
    this.#storage = (ctx as ObjectContext).storage;
    this.#store = new WorkflowStore(this.#storage, Date.now, () => {
      for (const wake of this.#readers) wake();
    });
  }

  /** False: an instance with this id exists. */
  async create(
    instanceId: string,
    params: unknown,
    schedule: CronSchedule | null = null,
    retention: Retention = { successMs: null, errorMs: null },
  ): Promise<boolean> {
    if (this.#store.find() !== null) return false;
    await this.#storage.setAlarm(Date.now());
    this.#store.create(instanceId, params, schedule, retention);
    return true;
  }

  /** Null: no such instance. */
  async status(): Promise<InstanceStatus | null> {
    const row = this.#store.find();
    if (row === null) return null;
    const { status, error, output, rollback } = row;
    return {
      status,
      ...(error === null ? {} : { error }),
      ...(output === undefined ? {} : { output }),
      ...(rollback === null ? {} : { rollback }),
    };
  }

  async sendEvent(type: string, payload: unknown): Promise<void> {
    this.#requireLive("receive events");
    if (typeof type !== "string" || type === "") throw new TypeError("an event needs a type");
    await this.#keepGoing();
    this.#store.addEvent(type, payload);
    this.#current?.wake();
  }

  async pause(): Promise<void> {
    const { status } = this.#requireLive("be paused");
    if (status === "paused" || status === "waitingForPause") return;
    // The handlers make good what has failed; an instance that stops half way would be neither.
    if (status === "rollingBack") throw new Error("a workflow that is rollingBack cannot be paused");
    const run = this.#current;
    run?.pause();
    this.#store.setStatus((run?.runningSteps ?? 0) > 0 ? "waitingForPause" : "paused");
  }

  async resume(): Promise<void> {
    const { status } = this.#requireLive("be resumed");
    if (status !== "paused" && status !== "waitingForPause") return;
    await this.#keepGoing();
    this.#store.setStatus("running");
    this.#current?.resume();
  }

  /** With `withRollback` the instance ends when the handlers of its steps have run. */
  async terminate(withRollback = false): Promise<void> {
    this.#requireLive("be terminated");
    this.#run?.end();
    this.#run = null;
    if (!withRollback) {
      await this.#end({ status: "terminated", output: undefined, error: null, rollback: null });
      return;
    }
    await this.#storage.setAlarm(Date.now());
    this.#store.unwind();
    this.#store.setStatus("rollingBack");
  }

  /** Runs the instance again, from its beginning or from a step; the results of the steps before it are kept. */
  async restart(from: RestartFrom | null = null): Promise<void> {
    if (this.#store.find() === null) throw new Error("instance.not_found");
    const position =
      from === null ? null : this.#store.positionOf(from.name, from.count ?? 1, from.type ?? null);
    if (from !== null && position === null)
      throw new Error(`instance.step_not_found: ${from.name}, number ${from.count ?? 1}`);
    await this.#storage.setAlarm(Date.now());
    this.#store.reset(position);
    this.#run?.end();
    this.#run = null;
  }

  /** Ends the instance and forgets it. False: there is none. */
  async delete(): Promise<boolean> {
    if (this.#store.find() === null) return false;
    this.#run?.end();
    this.#run = null;
    await this.#storage.deleteAll();
    this.#store.forget();
    return true;
  }

  /** Events after `cursor`; without any it waits for a while. */
  async history(cursor: number): Promise<HistoryPage> {
    const page = this.#historyPage(cursor);
    if (page.isOver || page.events.length > 0) return page;
    let wake = () => undefined as void;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      wake = resolve;
      this.#readers.add(wake);
      timer = setTimeout(resolve, HISTORY_WAIT_MS);
    });
    clearTimeout(timer);
    this.#readers.delete(wake);
    return this.#historyPage(cursor);
  }

  #historyPage(cursor: number): HistoryPage {
    const events = this.#store.history(cursor, HISTORY_PAGE);
    const row = this.#store.find();
    const hasEnded = row === null || ENDED.has(row.status);
    return { events, isOver: hasEnded && events.length < HISTORY_PAGE };
  }

  async alarm(): Promise<void> {
    const row = this.#store.find();
    if (row === null) return;
    if (row.endedAt !== null) {
      const keptUntil = row.endedAt + retentionOf(row);
      if (keptUntil <= Date.now()) await this.delete();
      else await this.#storage.setAlarm(keptUntil);
      return;
    }
    if (row.status === "paused") return;
    const known = this.#current;
    if (known === null && row.status === "waitingForPause") {
      // The steps that the pause waited for were cut off. They run again when the program is resumed.
      this.#store.setStatus("paused");
      return;
    }
    if (row.status !== "rollingBack") this.#store.setStatus("running");
    known?.wake();
    const run = known ?? this.#start(row);
    await run.untilParked();
    // It has ended, or was terminated or restarted, meanwhile.
    if (run !== this.#run) return;
    if (!run.isOver) {
      await this.#park();
      return;
    }
    this.#run = null;
    if (run.failure !== null) throw run.failure.reason;
  }

  /** The execution that goes on; null if there is none in memory. */
  get #current(): WorkflowRun | null {
    return this.#run?.isOver === false ? this.#run : null;
  }

  #start(row: WorkflowRow): WorkflowRun {
    const { parts } = this;
    if (parts === undefined) throw new Error("a workflow object has no workflow");
    const run = new WorkflowRun(this.#store, Date.now, () => this.#storage.sync(), row.isUnwinding);
    this.#run = run;
    void this.#execute(run, row, parts);
    return run;
  }

  /** Runs the program to its end, unless the execution is over before. Never rejects. */
  async #execute(run: WorkflowRun, row: WorkflowRow, parts: WorkflowParts): Promise<void> {
    const outcome = await (row.isUnwinding ? unwindProgram(run, row, parts) : runProgram(run, row, parts));
    if (run.isOver) return;
    try {
      await this.#end(outcome);
    } catch (error) {
      // Also if the object has left memory: its successor goes on.
      run.fail(error);
      return;
    }
    this.#run = null;
    run.end();
  }

  /** Nothing runs but waits: the object may leave memory until the earliest of them ends. */
  async #park(): Promise<void> {
    const { status } = this.#store.find() ?? {};
    if (status === "waitingForPause" || status === "paused") {
      this.#store.setStatus("paused");
      return;
    }
    if (status !== "rollingBack") this.#store.setStatus("waiting");
    const wakeAt = this.#store.nextWake();
    if (wakeAt !== null) await this.#storage.setAlarm(wakeAt);
  }

  /** While nothing but waits runs, the alarm lets the program go on, so that the object stays in memory meanwhile. */
  async #keepGoing(): Promise<void> {
    const run = this.#current;
    if (run === null || run.isParked) await this.#storage.setAlarm(Date.now());
  }

  async #end({ status, output, error, rollback }: Outcome): Promise<void> {
    try {
      this.#store.end(status, output, error, rollback);
    } catch (cause) {
      if (!isCloneError(cause)) throw cause;
      // The result of `run` cannot be stored.
      this.#store.end("errored", undefined, describe(cause), rollback);
    }
    const row = this.#store.find();
    if (row !== null) await this.#storage.setAlarm(Date.now() + retentionOf(row));
  }

  #requireLive(what: string): WorkflowRow {
    const row = this.#store.find();
    if (row === null) throw new Error("instance.not_found");
    if (ENDED.has(row.status)) throw new Error(`a workflow that is ${row.status} cannot ${what}`);
    return row;
  }
}

interface Outcome {
  readonly status: "complete" | "errored" | "terminated";
  readonly output: unknown;
  readonly error: StoredError | null;
  readonly rollback: RollbackOutcome | null;
}

async function runProgram(run: WorkflowRun, row: WorkflowRow, parts: WorkflowParts): Promise<Outcome> {
  const step = new WorkflowStep(run);
  try {
    const output = await parts.open().run(eventOf(row, parts), step);
    return { status: "complete", output, error: null, rollback: null };
  } catch (error) {
    const rollback = await step.rollBack(error instanceof Error ? error : new Error(String(error)));
    return { status: "errored", output: undefined, error: describe(error), rollback };
  }
}

/** Lets the program name the handlers of its finished steps, and runs them. */
async function unwindProgram(run: WorkflowRun, row: WorkflowRow, parts: WorkflowParts): Promise<Outcome> {
  const step = new WorkflowStep(run);
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, UNWIND_LIMIT_MS);
  });
  const ignore = () => undefined;
  const ended = Promise.resolve()
    .then(() => parts.open().run(eventOf(row, parts), step))
    .then(ignore, ignore);
  await Promise.race([ended, run.frontier, limit]);
  clearTimeout(timer);
  // Steps that the program begins side by side come to their frontier in the same task.
  await new Promise((resolve) => setImmediate(resolve));
  const rollback = await step.rollBack(new Error("The instance was terminated."));
  return { status: "terminated", output: undefined, error: null, rollback };
}

function eventOf(row: WorkflowRow, parts: WorkflowParts): WorkflowEvent {
  return {
    payload: row.params,
    timestamp: new Date(row.createdAt),
    instanceId: row.instanceId,
    workflowName: parts.name,
    ...(row.schedule === null ? {} : { schedule: row.schedule }),
  };
}

function retentionOf({ status, retention }: WorkflowRow): number {
  return (status === "complete" ? retention.successMs : retention.errorMs) ?? RETENTION_MS;
}

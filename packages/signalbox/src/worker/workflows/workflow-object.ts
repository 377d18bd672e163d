/**
 * The object of a workflow instance: its database holds the workflow, its alarm moves it on. Everything that the program does happens while `alarm`
 * runs, so the object stays in memory for it, and a crash in the middle runs the alarm again. So does a failure of the storage: it fails the
 * alarm, which is tried again, and never the workflow. An alarm is set before what it is for: one too many does no harm, and a write that the storage
 * refuses in between leaves nothing that waits for ever.
 *
 * States:  queued → running ⇄ waiting → complete | errored
 *          running → waitingForPause → paused → running;  any but the ended ones → terminated;  any → queued by `restart`
 */
import { DurableObject } from "../../agents/index.ts";
import { parseDuration } from "./duration.ts";
import { isCloneError, WorkflowRun } from "./workflow-run.ts";
import { describe, WorkflowStep } from "./workflow-step.ts";
import {
  type StoredError,
  type WorkflowRow,
  type WorkflowStatus,
  type WorkflowStorage,
  WorkflowStore,
} from "./workflow-store.ts";

export interface WorkflowObjectStorage extends WorkflowStorage {
  setAlarm(time: number): Promise<void>;
  sync(): Promise<void>;
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
}

/** How long an ended instance can be looked up. The originals keep 30 days. */
const RETENTION_MS = parseDuration("30 days");
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

  constructor(ctx: unknown, env: unknown) {
    super(ctx, env);
    this.#storage = (ctx as ObjectContext).storage;
    this.#store = new WorkflowStore(this.#storage);
  }

  /** False: an instance with this id exists. */
  async create(instanceId: string, params: unknown): Promise<boolean> {
    if (this.#store.find() !== null) return false;
    await this.#storage.setAlarm(Date.now());
    this.#store.create(instanceId, params, Date.now());
    return true;
  }

  /** Null: no such instance. */
  async status(): Promise<InstanceStatus | null> {
    const row = this.#store.find();
    if (row === null) return null;
    const { status, error, output } = row;
    return { status, ...(error === null ? {} : { error }), ...(output === undefined ? {} : { output }) };
  }

  async sendEvent(type: string, payload: unknown): Promise<void> {
    this.#requireLive("receive events");
    if (typeof type !== "string" || type === "") throw new TypeError("an event needs a type");
    await this.#keepGoing();
    this.#store.addEvent(type, payload, Date.now());
    this.#current?.wake();
  }

  async pause(): Promise<void> {
    const { status } = this.#requireLive("be paused");
    if (status === "paused" || status === "waitingForPause") return;
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

  async terminate(): Promise<void> {
    this.#requireLive("be terminated");
    this.#run?.end();
    this.#run = null;
    await this.#end("terminated", undefined, null);
  }

  async restart(): Promise<void> {
    if (this.#store.find() === null) throw new Error("instance.not_found");
    await this.#storage.setAlarm(Date.now());
    this.#store.reset();
    this.#run?.end();
    this.#run = null;
  }

  async alarm(): Promise<void> {
    const row = this.#store.find();
    if (row === null) return;
    if (row.endedAt !== null) {
      if (row.endedAt + RETENTION_MS <= Date.now()) this.#store.clear();
      else await this.#storage.setAlarm(row.endedAt + RETENTION_MS);
      return;
    }
    if (row.status === "paused") return;
    const known = this.#current;
    if (known === null && row.status === "waitingForPause") {
      // The steps that the pause waited for were cut off. They run again when the program is resumed.
      this.#store.setStatus("paused");
      return;
    }
    this.#store.setStatus("running");
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
    const run = new WorkflowRun(this.#store, Date.now, () => this.#storage.sync());
    this.#run = run;
    void this.#execute(run, row, parts);
    return run;
  }

  /** Runs the program to its end, unless the execution is over before. Never rejects. */
  async #execute(run: WorkflowRun, row: WorkflowRow, parts: WorkflowParts): Promise<void> {
    const outcome = await runProgram(run, row, parts);
    if (run.isOver) return;
    try {
      await this.#end(outcome.status, outcome.output, outcome.error);
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
    this.#store.setStatus("waiting");
    const wakeAt = this.#store.nextWake();
    if (wakeAt !== null) await this.#storage.setAlarm(wakeAt);
  }

  /** While nothing but waits runs, the alarm lets the program go on, so that the object stays in memory meanwhile. */
  async #keepGoing(): Promise<void> {
    const run = this.#current;
    if (run === null || run.isParked) await this.#storage.setAlarm(Date.now());
  }

  async #end(
    status: "complete" | "errored" | "terminated",
    output: unknown,
    error: StoredError | null,
  ): Promise<void> {
    const now = Date.now();
    try {
      this.#store.end(status, output, error, now);
    } catch (cause) {
      if (!isCloneError(cause)) throw cause;
      // The result of `run` cannot be stored.
      this.#store.end("errored", undefined, describe(cause), now);
    }
    await this.#storage.setAlarm(now + RETENTION_MS);
  }

  #requireLive(what: string): WorkflowRow {
    const row = this.#store.find();
    if (row === null) throw new Error("instance.not_found");
    if (ENDED.has(row.status)) throw new Error(`a workflow that is ${row.status} cannot ${what}`);
    return row;
  }
}

interface Outcome {
  readonly status: "complete" | "errored";
  readonly output: unknown;
  readonly error: StoredError | null;
}

async function runProgram(run: WorkflowRun, row: WorkflowRow, parts: WorkflowParts): Promise<Outcome> {
  const event = {
    payload: row.params,
    timestamp: new Date(row.createdAt),
    instanceId: row.instanceId,
    workflowName: parts.name,
  };
  try {
    const output = await parts.open().run(event, new WorkflowStep(run));
    return { status: "complete", output, error: null };
  } catch (error) {
    return { status: "errored", output: undefined, error: describe(error) };
  }
}

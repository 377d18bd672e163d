/**
 * The object of a workflow instance: its database holds the workflow, its alarm moves it on. Everything that the program does happens while `alarm`
 * runs, so the object stays in memory for it, and a crash in the middle runs the alarm again.
 *
 * States:  queued → running ⇄ waiting → complete | errored
 *          running → waitingForPause → paused → running;  any but the ended ones → terminated;  any → queued by `restart`
 */
import { DurableObject } from "../../agents/index.ts";
import { parseDuration } from "./duration.ts";
import { WorkflowRun } from "./workflow-run.ts";
import { describe, WorkflowStep } from "./workflow-step.ts";
import {
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
    this.#store.create(instanceId, params, Date.now());
    await this.#storage.setAlarm(Date.now());
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
    this.#store.addEvent(type, payload, Date.now());
    await this.#goOn();
  }

  async pause(): Promise<void> {
    const { status } = this.#requireLive("be paused");
    if (status === "paused" || status === "waitingForPause") return;
    this.#run?.pause();
    this.#store.setStatus((this.#run?.runningSteps ?? 0) > 0 ? "waitingForPause" : "paused");
  }

  async resume(): Promise<void> {
    const { status } = this.#requireLive("be resumed");
    if (status !== "paused" && status !== "waitingForPause") return;
    this.#store.setStatus("running");
    this.#run?.resume();
    await this.#goOn();
  }

  async terminate(): Promise<void> {
    this.#requireLive("be terminated");
    this.#run?.end();
    this.#run = null;
    await this.#end("terminated", undefined, null);
  }

  async restart(): Promise<void> {
    if (this.#store.find() === null) throw new Error("instance.not_found");
    this.#run?.end();
    this.#run = null;
    this.#store.reset();
    await this.#storage.setAlarm(Date.now());
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
    this.#store.setStatus("running");
    if (this.#run === null) this.#start(row);
    else this.#run.wake();
    const run = this.#run;
    await run?.untilParked();
    if (run !== null && run === this.#run) await this.#park();
  }

  #start(row: WorkflowRow): void {
    const run = new WorkflowRun(this.#store, Date.now, () => this.#storage.sync());
    this.#run = run;
    void this.#execute(run, row);
  }

  /** Ends the run when the program has ended, unless another run has replaced it. */
  async #execute(run: WorkflowRun, row: WorkflowRow): Promise<void> {
    const { parts } = this;
    if (parts === undefined) throw new Error("a workflow object has no workflow");
    const finish = async (status: "complete" | "errored", output: unknown, error: unknown) => {
      if (this.#run !== run) return;
      await this.#end(status, output, error === null ? null : describe(error));
      this.#run = null;
      run.end();
    };
    try {
      const event = {
        payload: row.params,
        timestamp: new Date(row.createdAt),
        instanceId: row.instanceId,
        workflowName: parts.name,
      };
      const output = await parts.open().run(event, new WorkflowStep(run));
      await finish("complete", output, null);
    } catch (error) {
      // The storage throws if the object has left memory; its successor goes on.
      await finish("errored", undefined, error).catch(() => undefined);
      run.end();
    }
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

  /** Something changed that a waiting step may wait for. While nothing but waits runs, the alarm goes on, so that the object stays in memory. */
  async #goOn(): Promise<void> {
    const wasParked = this.#run === null || this.#run.isParked;
    this.#run?.wake();
    if (wasParked) await this.#storage.setAlarm(Date.now());
  }

  async #end(
    status: "complete" | "errored" | "terminated",
    output: unknown,
    error: ReturnType<typeof describe> | null,
  ): Promise<void> {
    const now = Date.now();
    try {
      this.#store.end(status, output, error, now);
    } catch (cause) {
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

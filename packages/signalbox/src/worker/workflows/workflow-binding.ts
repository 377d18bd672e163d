/** `env.<WORKFLOW>`: creates and finds instances of a workflow, each an object of its own under the instance's id. */
import { createHash, randomUUID } from "node:crypto";
import type { ObjectNamespace } from "../../agents/index.ts";
import { parseDuration } from "./duration.ts";
import { type HistoryPage, type SubscribeOptions, WorkflowSubscription } from "./workflow-history.ts";
import type { InstanceStatus, RestartFrom } from "./workflow-object.ts";
import type { CronSchedule, Retention } from "./workflow-store.ts";

export interface CreateOptions {
  readonly id?: string;
  readonly params?: unknown;
  readonly retention?: { readonly successRetention?: unknown; readonly errorRetention?: unknown };
}

/** Many instances: as many with the same params, or each with its own options. */
export type BatchOptions =
  | (Omit<CreateOptions, "id"> & { readonly count: number; readonly instances?: undefined })
  | { readonly instances: readonly CreateOptions[]; readonly count?: undefined };

export interface BatchResult {
  readonly created: WorkflowHandle[];
  readonly errors: readonly BatchError[];
}

interface BatchError {
  /** The place in the batch. */
  readonly index: number;
  readonly id?: string;
  readonly code: number;
  readonly message: string;
}

/** The methods of `WorkflowObject`, as a stub has them. */
interface WorkflowStub {
  create(
    instanceId: string,
    params: unknown,
    schedule: CronSchedule | null,
    retention: Retention,
  ): Promise<boolean>;
  status(): Promise<InstanceStatus | null>;
  sendEvent(type: string, payload: unknown): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  terminate(withRollback: boolean): Promise<void>;
  restart(from: RestartFrom | null): Promise<void>;
  delete(): Promise<boolean>;
  history(cursor: number): Promise<HistoryPage>;
}

/** Codes of errors in a batch, as HTTP has them. */
const INVALID = 400;
const NOT_FOUND = 404;
const EXISTS = 409;

/** Longer ids are refused by the originals too. */
const ID = /^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,99}$/;

export class WorkflowBinding {
  readonly #namespace: ObjectNamespace;

  constructor(namespace: ObjectNamespace) {
    this.#namespace = namespace;
  }

  async create(options: CreateOptions = {}): Promise<WorkflowHandle> {
    const created = await this.#create(options);
    if (created === null) throw new Error(`instance.already_exists: ${options.id ?? ""}`);
    return created;
  }

  /** An instance for a due time of a schedule; the time names it, so that it is created once. */
  async createScheduled(schedule: CronSchedule): Promise<void> {
    const hash = createHash("sha256").update(schedule.cron).digest("hex").slice(0, 16);
    await this.#create({ id: `cron-${schedule.scheduledTime}-${hash}` }, schedule);
  }

  /** A list creates the instances that do not exist yet, and returns these; the other forms also report why the rest was not created. */
  async createBatch(batch: readonly CreateOptions[]): Promise<WorkflowHandle[]>;
  async createBatch(batch: BatchOptions): Promise<BatchResult>;
  async createBatch(batch: readonly CreateOptions[] | BatchOptions): Promise<WorkflowHandle[] | BatchResult> {
    if (isList(batch)) {
      const created = await Promise.all(batch.map((options) => this.#create(options)));
      return created.filter((handle) => handle !== null);
    }
    const created: WorkflowHandle[] = [];
    const errors: BatchError[] = [];
    const report = (index: number, id: string | undefined, code: number, message: string) =>
      errors.push({ index, ...(id === undefined ? {} : { id }), code, message });
    const results = await Promise.allSettled(toList(batch).map((options) => this.#create(options)));
    for (const [index, result] of results.entries()) {
      const id = batch.instances?.[index]?.id;
      if (result.status === "rejected") report(index, id, INVALID, messageOf(result.reason));
      else if (result.value === null) report(index, id, EXISTS, `instance.already_exists: ${id ?? ""}`);
      else created.push(result.value);
    }
    return { created, errors };
  }

  /** Removes instances, whatever their status. An id that is given twice is removed once, and reported for each of its places. */
  async deleteBatch(
    ids: readonly string[],
  ): Promise<{ deleted: { id: string }[]; errors: Omit<BatchError, "index">[] }> {
    const deleted: { id: string }[] = [];
    const errors: { id: string; code: number; message: string }[] = [];
    const results = new Map<string, { code: number; message: string } | null>();
    for (const id of new Set(ids)) results.set(id, await this.#delete(id));
    for (const id of ids) {
      const error = results.get(id) ?? null;
      if (error === null) deleted.push({ id });
      else errors.push({ id, ...error });
    }
    return { deleted, errors };
  }

  /** Null: the instance is gone. */
  async #delete(id: string): Promise<{ code: number; message: string } | null> {
    try {
      if (await this.#stub(id).delete()) return null;
      return { code: NOT_FOUND, message: `instance.not_found: ${id}` };
    } catch (error) {
      return { code: INVALID, message: messageOf(error) };
    }
  }

  /** Rejects if there is no such instance. */
  async get(id: string): Promise<WorkflowHandle> {
    const stub = this.#stub(id);
    if ((await stub.status()) === null) throw new Error(`instance.not_found: ${id}`);
    return new WorkflowHandle(id, stub);
  }

  async #create(
    { id = randomUUID(), params, retention = {} }: CreateOptions,
    schedule: CronSchedule | null = null,
  ): Promise<WorkflowHandle | null> {
    const stub = this.#stub(id);
    const { successRetention, errorRetention } = retention;
    const kept = { successMs: toMs(successRetention), errorMs: toMs(errorRetention) };
    // Params are always an object for the program, as in the originals.
    return (await stub.create(id, params ?? {}, schedule, kept)) ? new WorkflowHandle(id, stub) : null;
  }

  #stub(id: unknown): WorkflowStub {
    if (typeof id !== "string" || !ID.test(id))
      throw new Error(
        `instance.invalid_id: an id has 1 to 100 letters, digits, _ and -, found ${JSON.stringify(id)}`,
      );
    return this.#namespace.getByName(id) as unknown as WorkflowStub;
  }
}

/** One instance, as `create` and `get` return it. */
export class WorkflowHandle {
  readonly id: string;
  readonly #stub: WorkflowStub;

  constructor(id: string, stub: WorkflowStub) {
    this.id = id;
    this.#stub = stub;
  }

  async status(): Promise<InstanceStatus> {
    const status = await this.#stub.status();
    if (status === null) throw new Error(`instance.not_found: ${this.id}`);
    return status;
  }

  async sendEvent({ type, payload }: { readonly type: string; readonly payload?: unknown }): Promise<void> {
    await this.#stub.sendEvent(type, payload);
  }

  async pause(): Promise<void> {
    await this.#stub.pause();
  }

  async resume(): Promise<void> {
    await this.#stub.resume();
  }

  /** With `rollback`, steps are undone first; the promise resolves before that. */
  async terminate(options: { readonly rollback?: boolean } = {}): Promise<void> {
    await this.#stub.terminate(options.rollback === true);
  }

  async restart(options: { readonly from?: RestartFrom } = {}): Promise<void> {
    await this.#stub.restart(options.from ?? null);
  }

  /** Removes the instance and everything that it has stored. */
  async delete(): Promise<void> {
    if (!(await this.#stub.delete())) throw new Error(`instance.not_found: ${this.id}`);
  }

  /** The events of the instance from its creation on; it ends when the instance has ended. */
  async subscribe(options: SubscribeOptions = {}): Promise<WorkflowSubscription> {
    return new WorkflowSubscription((cursor) => this.#stub.history(cursor), options);
  }
}

function isList(batch: readonly CreateOptions[] | BatchOptions): batch is readonly CreateOptions[] {
  return Array.isArray(batch);
}

function toList(batch: BatchOptions): readonly CreateOptions[] {
  if (batch.instances !== undefined) return batch.instances;
  const { count, ...options } = batch;
  if (!Number.isInteger(count) || count < 1)
    throw new TypeError("createBatch() takes a list, { instances } or { count } of at least 1");
  return Array.from({ length: count }, () => options);
}

function toMs(duration: unknown): number | null {
  return duration === undefined ? null : parseDuration(duration);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

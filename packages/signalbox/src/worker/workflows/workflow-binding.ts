/** `env.<WORKFLOW>`: creates and finds instances of a workflow, each an object of its own under the instance's id. */
import { randomUUID } from "node:crypto";
import type { ObjectNamespace } from "../../agents/index.ts";
import type { InstanceStatus } from "./workflow-object.ts";

export interface CreateOptions {
  readonly id?: string;
  readonly params?: unknown;
}

/** The methods of `WorkflowObject`, as a stub has them. */
interface WorkflowStub {
  create(instanceId: string, params: unknown): Promise<boolean>;
  status(): Promise<InstanceStatus | null>;
  sendEvent(type: string, payload: unknown): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  terminate(): Promise<void>;
  restart(): Promise<void>;
}

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

  /** Creates the instances that do not exist yet, and returns these. */
  async createBatch(batch: readonly CreateOptions[]): Promise<WorkflowHandle[]> {
    const created = await Promise.all(batch.map((options) => this.#create(options)));
    return created.filter((handle) => handle !== null);
  }

  /** Rejects if there is no such instance. */
  async get(id: string): Promise<WorkflowHandle> {
    const stub = this.#stub(id);
    if ((await stub.status()) === null) throw new Error(`instance.not_found: ${id}`);
    return new WorkflowHandle(id, stub);
  }

  async #create({ id = randomUUID(), params }: CreateOptions): Promise<WorkflowHandle | null> {
    const stub = this.#stub(id);
    // Params are always an object for the program, as in the originals.
    return (await stub.create(id, params ?? {})) ? new WorkflowHandle(id, stub) : null;
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

  async terminate(): Promise<void> {
    await this.#stub.terminate();
  }

  async restart(): Promise<void> {
    await this.#stub.restart();
  }
}

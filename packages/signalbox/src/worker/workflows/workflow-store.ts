/**
 * What a workflow instance remembers, in the database of its object: its status, the results of its steps, and events that no step has taken.
 *
 * States of a step:  running → done | failed;  running → waiting (for a retry, a time or an event) → running | done | failed
 */
import { deserialize, serialize } from "node:v8";

/** The parts of `ctx.storage` that the store uses. */
export interface WorkflowStorage {
  readonly sql: {
    exec(query: string, ...values: unknown[]): { toArray(): Record<string, unknown>[] };
  };
  transactionSync<T>(work: () => T): T;
}

export type WorkflowStatus =
  | "queued"
  | "running"
  | "waiting"
  | "paused"
  | "waitingForPause"
  | "complete"
  | "errored"
  | "terminated";

export interface StoredError {
  readonly name: string;
  readonly message: string;
}

export interface WorkflowRow {
  readonly instanceId: string;
  readonly status: WorkflowStatus;
  readonly params: unknown;
  readonly output: unknown;
  readonly error: StoredError | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

export type StepState = "running" | "waiting" | "done" | "failed";

export interface StepRow {
  readonly state: StepState;
  /** The attempt that runs, or that runs next; from 1. */
  readonly attempt: number;
  readonly wakeAt: number | null;
  readonly value: unknown;
  readonly error: StoredError | null;
}

export interface StoredEvent {
  readonly type: string;
  readonly payload: unknown;
  readonly createdAt: number;
}

const SCHEMA = [
  `CREATE TABLE IF NOT EXISTS workflow (
     id INTEGER PRIMARY KEY CHECK (id = 1), instance_id TEXT NOT NULL, status TEXT NOT NULL, params BLOB NOT NULL,
     output BLOB, error TEXT, created_at INTEGER NOT NULL, ended_at INTEGER)`,
  `CREATE TABLE IF NOT EXISTS step (
     key TEXT PRIMARY KEY, state TEXT NOT NULL, attempt INTEGER NOT NULL, wake_at INTEGER, value BLOB, error TEXT)`,
  `CREATE TABLE IF NOT EXISTS event (
     id INTEGER PRIMARY KEY, type TEXT NOT NULL, payload BLOB NOT NULL, created_at INTEGER NOT NULL)`,
];

export class WorkflowStore {
  readonly #storage: WorkflowStorage;

  constructor(storage: WorkflowStorage) {
    this.#storage = storage;
    for (const statement of SCHEMA) storage.sql.exec(statement);
  }

  /** Null: the instance does not exist. */
  find(): WorkflowRow | null {
    const [row] = this.#storage.sql.exec("SELECT * FROM workflow").toArray();
    if (row === undefined) return null;
    return {
      instanceId: row["instance_id"] as string,
      status: row["status"] as WorkflowStatus,
      params: read(row["params"]),
      output: read(row["output"]),
      error: readError(row["error"]),
      createdAt: row["created_at"] as number,
      endedAt: row["ended_at"] as number | null,
    };
  }

  create(instanceId: string, params: unknown, now: number): void {
    this.#storage.sql.exec(
      "INSERT INTO workflow (id, instance_id, status, params, created_at) VALUES (1, ?, 'queued', ?, ?)",
      instanceId,
      write(params),
      now,
    );
  }

  setStatus(status: WorkflowStatus): void {
    this.#storage.sql.exec("UPDATE workflow SET status = ?", status);
  }

  end(
    status: "complete" | "errored" | "terminated",
    output: unknown,
    error: StoredError | null,
    now: number,
  ): void {
    this.#storage.sql.exec(
      "UPDATE workflow SET status = ?, output = ?, error = ?, ended_at = ?",
      status,
      write(output),
      error === null ? null : JSON.stringify(error),
      now,
    );
  }

  /** Forgets steps, events and the outcome. */
  reset(): void {
    this.#storage.transactionSync(() => {
      this.#storage.sql.exec("DELETE FROM step");
      this.#storage.sql.exec("DELETE FROM event");
      this.#storage.sql.exec(
        "UPDATE workflow SET status = 'queued', output = NULL, error = NULL, ended_at = NULL",
      );
    });
  }

  /** Forgets the instance. */
  clear(): void {
    this.#storage.transactionSync(() => {
      for (const table of ["step", "event", "workflow"]) this.#storage.sql.exec(`DELETE FROM ${table}`);
    });
  }

  step(key: string): StepRow | null {
    const [row] = this.#storage.sql.exec("SELECT * FROM step WHERE key = ?", key).toArray();
    if (row === undefined) return null;
    return {
      state: row["state"] as StepState,
      attempt: row["attempt"] as number,
      wakeAt: row["wake_at"] as number | null,
      value: read(row["value"]),
      error: readError(row["error"]),
    };
  }

  putStep(key: string, state: "running" | "waiting", attempt: number, wakeAt: number | null): void {
    this.#storage.sql.exec(
      "INSERT OR REPLACE INTO step (key, state, attempt, wake_at) VALUES (?, ?, ?, ?)",
      key,
      state,
      attempt,
      wakeAt,
    );
  }

  /** Throws if the value cannot be stored. Returns the value as a replay will read it. */
  finishStep(key: string, value: unknown): unknown {
    const bytes = write(value);
    this.#storage.sql.exec(
      "UPDATE step SET state = 'done', wake_at = NULL, value = ? WHERE key = ?",
      bytes,
      key,
    );
    return read(bytes);
  }

  failStep(key: string, error: StoredError): void {
    this.#storage.sql.exec(
      "UPDATE step SET state = 'failed', wake_at = NULL, error = ? WHERE key = ?",
      JSON.stringify(error),
      key,
    );
  }

  /** The earliest time at which a waiting step goes on; null: none waits for a time. */
  nextWake(): number | null {
    const [row] = this.#storage.sql
      .exec("SELECT min(wake_at) AS wake FROM step WHERE state = 'waiting'")
      .toArray();
    return (row?.["wake"] as number | null | undefined) ?? null;
  }

  addEvent(type: string, payload: unknown, now: number): void {
    this.#storage.sql.exec(
      "INSERT INTO event (type, payload, created_at) VALUES (?, ?, ?)",
      type,
      write(payload),
      now,
    );
  }

  /** Takes the oldest event of a type for a step: the event is gone and the step has it, or neither. */
  takeEvent(key: string, type: string): StoredEvent | null {
    return this.#storage.transactionSync(() => {
      const [row] = this.#storage.sql
        .exec("DELETE FROM event WHERE id = (SELECT min(id) FROM event WHERE type = ?) RETURNING *", type)
        .toArray();
      if (row === undefined) return null;
      const event = { type, payload: read(row["payload"]), createdAt: row["created_at"] as number };
      this.finishStep(key, event);
      return event;
    });
  }
}

function write(value: unknown): Uint8Array {
  try {
    return new Uint8Array(serialize(value));
  } catch (cause) {
    throw new DOMException(cause instanceof Error ? cause.message : String(cause), "DataCloneError");
  }
}

function read(bytes: unknown): unknown {
  if (bytes === null || bytes === undefined) return undefined;
  return deserialize(bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : (bytes as Uint8Array)) as unknown;
}

function readError(text: unknown): StoredError | null {
  return typeof text === "string" ? (JSON.parse(text) as StoredError) : null;
}

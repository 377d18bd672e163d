/**
 * What a workflow instance remembers, in the database of its object: its status, the results of its steps, events that no step has taken, and the
 * history that subscriptions read.
 *
 * States of a step:  running → done | failed;  running → waiting (for a retry, a time or an event) → running | done | failed
 */
import { deserialize, serialize } from "node:v8";
import type { WorkflowHistoryEvent } from "./workflow-history.ts";

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
  | "rollingBack"
  | "complete"
  | "errored"
  | "terminated";

/** How the history names a status. */
const STATUS_EVENTS: Readonly<Partial<Record<WorkflowStatus, string>>> = {
  running: "workflow_running",
  waiting: "workflow_waiting",
  paused: "workflow_paused",
  waitingForPause: "workflow_waiting_for_pause",
};

export interface StoredError {
  readonly name: string;
  readonly message: string;
}

/** What became of the rollback handlers. */
export interface RollbackOutcome {
  readonly outcome: "complete" | "failed";
  readonly error?: StoredError;
}

export interface CronSchedule {
  readonly cron: string;
  readonly scheduledTime: number;
}

/** Milliseconds that an ended instance is kept; null: the default. */
export interface Retention {
  readonly successMs: number | null;
  readonly errorMs: number | null;
}

export interface WorkflowRow {
  readonly instanceId: string;
  readonly status: WorkflowStatus;
  readonly params: unknown;
  readonly output: unknown;
  readonly error: StoredError | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly schedule: CronSchedule | null;
  readonly retention: Retention;
  /** True while the instance is rolled back because it was terminated. */
  readonly isUnwinding: boolean;
  readonly rollback: RollbackOutcome | null;
}

export type StepKind = "do" | "sleep" | "waitForEvent" | "rollback";

/** A step: the n-th of its kind and name. */
export interface StepId {
  readonly kind: StepKind;
  readonly name: string;
  readonly count: number;
}

export type StepState = "running" | "waiting" | "done" | "failed";

export interface StepRow {
  /** Steps are numbered in the order in which they began. */
  readonly position: number;
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
  `CREATE TABLE workflow (
     id INTEGER PRIMARY KEY CHECK (id = 1), instance_id TEXT NOT NULL, status TEXT NOT NULL, params BLOB NOT NULL,
     output BLOB, error TEXT, created_at INTEGER NOT NULL, ended_at INTEGER, schedule TEXT, success_ms INTEGER, error_ms INTEGER,
     unwinding INTEGER NOT NULL DEFAULT 0, rollback TEXT)`,
  `CREATE TABLE step (
     position INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL, state TEXT NOT NULL,
     attempt INTEGER NOT NULL, wake_at INTEGER, value BLOB, is_stream INTEGER NOT NULL DEFAULT 0, is_sensitive INTEGER NOT NULL DEFAULT 0,
     error TEXT, UNIQUE (kind, name, count))`,
  `CREATE TABLE event (
     id INTEGER PRIMARY KEY, type TEXT NOT NULL, payload BLOB NOT NULL, created_at INTEGER NOT NULL)`,
  // The output of a step is read from its row.
  `CREATE TABLE history (
     id INTEGER PRIMARY KEY AUTOINCREMENT, type TEXT NOT NULL, at INTEGER NOT NULL, fields TEXT NOT NULL, step INTEGER)`,
];

export class WorkflowStore {
  readonly #storage: WorkflowStorage;
  readonly #now: () => number;
  readonly #onHistory: () => void;
  /** An instance that does not exist has no tables, so that an object that was only asked for is nothing worth keeping. */
  #hasTables: boolean;

  constructor(storage: WorkflowStorage, now: () => number, onHistory: () => void) {
    this.#storage = storage;
    this.#now = now;
    this.#onHistory = onHistory;
    this.#hasTables =
      storage.sql.exec("SELECT 1 FROM sqlite_schema WHERE name = 'workflow'").toArray().length > 0;
  }

  /** Null: the instance does not exist. */
  find(): WorkflowRow | null {
    if (!this.#hasTables) return null;
    const [row] = this.#storage.sql.exec("SELECT * FROM workflow").toArray();
    if (row === undefined) return null;
    return {
      instanceId: row["instance_id"] as string,
      status: row["status"] as WorkflowStatus,
      params: read(row["params"]),
      output: read(row["output"]),
      error: readJson<StoredError>(row["error"]),
      createdAt: row["created_at"] as number,
      endedAt: row["ended_at"] as number | null,
      schedule: readJson<CronSchedule>(row["schedule"]),
      retention: {
        successMs: row["success_ms"] as number | null,
        errorMs: row["error_ms"] as number | null,
      },
      isUnwinding: row["unwinding"] === 1,
      rollback: readJson<RollbackOutcome>(row["rollback"]),
    };
  }

  create(instanceId: string, params: unknown, schedule: CronSchedule | null, retention: Retention): void {
    const bytes = write(params);
    this.#storage.transactionSync(() => {
      if (!this.#hasTables) for (const statement of SCHEMA) this.#storage.sql.exec(statement);
      this.#storage.sql.exec(
        `INSERT INTO workflow (id, instance_id, status, params, created_at, schedule, success_ms, error_ms)
         VALUES (1, ?, 'queued', ?, ?, ?, ?, ?)`,
        instanceId,
        bytes,
        this.#now(),
        schedule === null ? null : JSON.stringify(schedule),
        retention.successMs,
        retention.errorMs,
      );
      this.#storage.sql.exec(
        "INSERT INTO history (type, at, fields) VALUES ('workflow_queued', ?, '{}')",
        this.#now(),
      );
    });
    this.#hasTables = true;
    this.#onHistory();
  }

  setStatus(status: WorkflowStatus): void {
    const before = this.find()?.status;
    if (before === status) return;
    this.#storage.sql.exec("UPDATE workflow SET status = ?", status);
    if (before === "queued") this.log("workflow_started");
    const event = STATUS_EVENTS[status];
    if (event !== undefined) this.log(event);
  }

  /** From now on the instance is rolled back, whatever happens to the process. */
  unwind(): void {
    this.#storage.sql.exec("UPDATE workflow SET unwinding = 1");
  }

  end(
    status: "complete" | "errored" | "terminated",
    output: unknown,
    error: StoredError | null,
    rollback: RollbackOutcome | null,
  ): void {
    const bytes = write(output);
    this.#storage.sql.exec(
      "UPDATE workflow SET status = ?, output = ?, error = ?, ended_at = ?, unwinding = 0, rollback = ?",
      status,
      bytes,
      error === null ? null : JSON.stringify(error),
      this.#now(),
      rollback === null ? null : JSON.stringify(rollback),
    );
    if (status === "errored") this.log("workflow_errored", { error });
    else this.log(status === "complete" ? "workflow_completed" : "workflow_terminated");
  }

  /** Forgets the outcome, and the steps and events, or only the steps from the given one on. */
  reset(from: number | null): void {
    this.#storage.transactionSync(() => {
      this.#storage.sql.exec("DELETE FROM step WHERE position >= ? OR kind = 'rollback'", from ?? 0);
      if (from === null) this.#storage.sql.exec("DELETE FROM event");
      this.#storage.sql.exec(
        "UPDATE workflow SET status = 'queued', output = NULL, error = NULL, ended_at = NULL, unwinding = 0, rollback = NULL",
      );
    });
    this.log("workflow_queued");
  }

  /** The tables are gone with everything else that the object stored. */
  forget(): void {
    this.#hasTables = false;
    this.#onHistory();
  }

  step({ kind, name, count }: StepId): StepRow | null {
    const [row] = this.#storage.sql
      .exec("SELECT * FROM step WHERE kind = ? AND name = ? AND count = ?", kind, name, count)
      .toArray();
    if (row === undefined) return null;
    return {
      position: row["position"] as number,
      state: row["state"] as StepState,
      attempt: row["attempt"] as number,
      wakeAt: row["wake_at"] as number | null,
      value: row["is_stream"] === 1 ? toStream(row["value"]) : read(row["value"]),
      error: readJson<StoredError>(row["error"]),
    };
  }

  /** The place of a step in the order of steps; null: there is none. `type` null: of any kind. */
  positionOf(name: string, count: number, type: string | null): number | null {
    const [row] = this.#storage.sql
      .exec(
        "SELECT min(position) AS position FROM step WHERE name = ? AND count = ? AND kind <> 'rollback' AND (kind = ? OR ? IS NULL)",
        name,
        count,
        type,
        type,
      )
      .toArray();
    return (row?.["position"] as number | null | undefined) ?? null;
  }

  /** Returns the place of the step. */
  putStep(
    { kind, name, count }: StepId,
    state: "running" | "waiting",
    attempt: number,
    wakeAt: number | null,
  ): number {
    const [row] = this.#storage.sql
      .exec(
        `INSERT INTO step (kind, name, count, state, attempt, wake_at) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (kind, name, count) DO UPDATE SET state = excluded.state, attempt = excluded.attempt, wake_at = excluded.wake_at
         RETURNING position`,
        kind,
        name,
        count,
        state,
        attempt,
        wakeAt,
      )
      .toArray();
    return row?.["position"] as number;
  }

  /** Throws if the value cannot be stored. Returns the value as a replay will read it. */
  finishStep({ kind, name, count }: StepId, value: unknown, isSensitive = false): unknown {
    const isStream = value instanceof StreamResult;
    const bytes = isStream ? value.bytes : write(value);
    this.#storage.sql.exec(
      `UPDATE step SET state = 'done', wake_at = NULL, value = ?, is_stream = ?, is_sensitive = ?
       WHERE kind = ? AND name = ? AND count = ?`,
      bytes,
      isStream ? 1 : 0,
      isSensitive ? 1 : 0,
      kind,
      name,
      count,
    );
    return isStream ? toStream(bytes) : read(bytes);
  }

  failStep({ kind, name, count }: StepId, error: StoredError): void {
    this.#storage.sql.exec(
      "UPDATE step SET state = 'failed', wake_at = NULL, error = ? WHERE kind = ? AND name = ? AND count = ?",
      JSON.stringify(error),
      kind,
      name,
      count,
    );
  }

  /** The earliest time at which a waiting step goes on; null: none waits for a time. */
  nextWake(): number | null {
    const [row] = this.#storage.sql
      .exec("SELECT min(wake_at) AS wake FROM step WHERE state = 'waiting'")
      .toArray();
    return (row?.["wake"] as number | null | undefined) ?? null;
  }

  addEvent(type: string, payload: unknown): void {
    this.#storage.sql.exec(
      "INSERT INTO event (type, payload, created_at) VALUES (?, ?, ?)",
      type,
      write(payload),
      this.#now(),
    );
  }

  /** Takes the oldest event of a type for a step: the event is gone and the step has it, or neither. */
  takeEvent(step: StepId, type: string): StoredEvent | null {
    return this.#storage.transactionSync(() => {
      const [row] = this.#storage.sql
        .exec("DELETE FROM event WHERE id = (SELECT min(id) FROM event WHERE type = ?) RETURNING *", type)
        .toArray();
      if (row === undefined) return null;
      const event = { type, payload: read(row["payload"]), createdAt: row["created_at"] as number };
      this.finishStep(step, event);
      return event;
    });
  }

  /** Adds an event to the history. `step` is the place of the step whose output belongs to it. */
  log(type: string, fields: Readonly<Record<string, unknown>> = {}, step: number | null = null): void {
    this.#storage.sql.exec(
      "INSERT INTO history (type, at, fields, step) VALUES (?, ?, ?, ?)",
      type,
      this.#now(),
      JSON.stringify(fields),
      step,
    );
    this.#onHistory();
  }

  /** Events with a higher number than `after`, in order. */
  history(after: number, limit: number): WorkflowHistoryEvent[] {
    const row = this.find();
    if (row === null) return [];
    const rows = this.#storage.sql
      .exec(
        `SELECT h.id, h.type, h.at, h.fields, s.value, s.is_stream, s.is_sensitive FROM history h LEFT JOIN step s ON s.position = h.step
         WHERE h.id > ? ORDER BY h.id LIMIT ?`,
        after,
        limit,
      )
      .toArray();
    return rows.map((event) => ({
      instanceId: row.instanceId,
      eventId: event["id"] as number,
      timestamp: event["at"] as number,
      type: event["type"] as string,
      ...(JSON.parse(event["fields"] as string) as Record<string, unknown>),
      ...outputOf(event, row),
    }));
  }
}

/** What an event of the history shows beside its own fields. */
function outputOf(event: Record<string, unknown>, row: WorkflowRow): Record<string, unknown> {
  if (event["type"] === "workflow_started") return { params: row.params };
  if (event["type"] === "workflow_completed") return { output: row.output };
  // The output of a step that is sensitive, or a stream, is not repeated.
  if (event["type"] !== "step_completed" || event["is_sensitive"] === 1 || event["is_stream"] === 1)
    return {};
  return { output: read(event["value"]) };
}

/** The bytes of a stream that a step has returned. */
export class StreamResult {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

function toStream(bytes: unknown): ReadableStream | null {
  return new Response(new Uint8Array(bytes as ArrayBuffer)).body;
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

function readJson<T>(text: unknown): T | null {
  return typeof text === "string" ? (JSON.parse(text) as T) : null;
}

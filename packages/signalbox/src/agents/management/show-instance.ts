/** The representation of agents and instances in the management interface. */
import { z } from "zod";
import { isoTime } from "../../core/iso-time.ts";
import { parameterNames } from "../api/parameter-names.ts";
import type { SqlValue } from "../../core/sql.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { DeadLetter } from "../work/dead-letters.ts";
import type { InstanceReader } from "../instance/inspection.ts";
import type { CatalogEntry } from "../instance/instance-catalog.ts";
import type { Residency } from "./residents.ts";
import type { LiveConnection } from "../connections/live-connection.ts";
import type { ActivityEvent } from "../instance/activity.ts";
import { PULSE_MINUTES, type PulseFigures, pulseP95 } from "../instance/agent-pulse.ts";
import { INSTANCE_PROBLEMS } from "../instance/instance-pages.ts";
import type { Failure } from "../instance/problem-index.ts";
import type { RecentTurns } from "../instance/timeline.ts";
import type { ScheduleState } from "../work/schedule-row.ts";
import type { QueueItem } from "../work/work-queue.ts";

export const agentResult = z.object({
  name: z.string(),
  class_name: z.string(),
  kind: z.enum(["agent", "object"]),
  is_built_in: z.boolean(),
  callable: z.array(
    z.object({
      name: z.string(),
      description: z.string().nullable(),
      streaming: z.boolean(),
      /** The names of the parameters, without the stream of a streaming method; null if they are not known. */
      parameters: z
        .array(z.object({ name: z.string(), optional: z.boolean(), rest: z.boolean() }))
        .nullable(),
    }),
  ),
  instance_count: z.int(),
  /** Turns of all instances in each of the last 60 minutes, the current one last. */
  turns: z.array(z.int()),
  failed_turns: z.int(),
  /** 95th percentile of their durations, at most half too large; null without turns. */
  turn_p95_ms: z.number().nullable(),
});

export const instanceResult = z.object({
  agent: z.string(),
  name: z.string(),
  /** The name that a worker program gave its object; null for agents, whose name it is, and for objects without a name. */
  object_name: z.string().nullable(),
  created_at: z.iso.datetime(),
  last_active_at: z.iso.datetime(),
  in_memory: z.boolean(),
  connection_count: z.int(),
  /** In a cluster, the name of the node that owns the instance; null if no living node does, and without a cluster. */
  node: z.string().nullable(),
  /** Of the index, at most some seconds old; 10,000 means that many or more. */
  queued: z.int(),
  /** Queue items that have failed and wait for another attempt. */
  retrying: z.int(),
  /** As `queued`: 10,000 means that many or more. */
  dead_letters: z.int(),
  last_error: z.string().nullable(),
  last_error_at: z.iso.datetime().nullable(),
  /** Since when a turn has been running. */
  busy_since: z.iso.datetime().nullable(),
  turn: z.object({ kind: z.string(), label: z.string() }).nullable(),
  waiting_turns: z.int(),
});

export const listedInstanceResult = instanceResult.extend({
  /** Recorded turns in each twelfth of the last hour, the current one last; empty if turns are not recorded. */
  turns: z.array(z.int()),
  turn_p95_ms: z.number().nullable(),
});

export const problemInstanceResult = instanceResult.extend({ problems: z.array(z.enum(INSTANCE_PROBLEMS)) });

const failureResult = z.object({
  id: z.string(),
  at: z.iso.datetime(),
  kind: z.string(),
  label: z.string(),
  name: z.string(),
  message: z.string(),
  stack: z.string().nullable(),
});

export const instanceDetailResult = instanceResult.extend({
  last_failure: failureResult.nullable(),
  state: z.unknown(),
  queue_count: z.int(),
  dead_letter_count: z.int(),
  schedule_count: z.int(),
  next_due_at: z.iso.datetime().nullable(),
});

export const queueItemResult = z.object({
  id: z.string(),
  callback: z.string(),
  payload: z.unknown(),
  attempts: z.int(),
  created_at: z.iso.datetime(),
  next_attempt_at: z.iso.datetime(),
  last_error: z.string().nullable(),
  /** An attempt is in progress. */
  running: z.boolean(),
});

export const deadLetterResult = z.object({
  id: z.string(),
  item_id: z.string(),
  origin: z.enum(["queue", "schedule"]),
  callback: z.string(),
  payload: z.unknown(),
  attempts: z.int(),
  error: z.string(),
  created_at: z.iso.datetime(),
  failed_at: z.iso.datetime(),
});

export const scheduleResult = z.object({
  id: z.string(),
  type: z.enum(["scheduled", "delayed", "cron", "interval"]),
  callback: z.string(),
  payload: z.unknown(),
  due_at: z.iso.datetime(),
  cron: z.string().nullable(),
  interval_seconds: z.number().nullable(),
  attempts: z.int(),
  running: z.boolean(),
});

export const connectionResult = z.object({
  id: z.string(),
  tags: z.array(z.string()),
  is_readonly: z.boolean(),
  uri: z.string(),
});

export const activityResult = z.object({
  type: z.string(),
  agent: z.string(),
  name: z.string(),
  timestamp: z.iso.datetime(),
  detail: z.record(z.string(), z.unknown()),
});

type ShownPulse = Pick<z.input<typeof agentResult>, "turns" | "failed_turns" | "turn_p95_ms">;

export function pulse(figures: PulseFigures | undefined): ShownPulse {
  if (figures === undefined)
    return { turns: Array.from({ length: PULSE_MINUTES }, () => 0), failed_turns: 0, turn_p95_ms: null };
  return { turns: [...figures.turns], failed_turns: figures.failed, turn_p95_ms: pulseP95(figures) };
}

export function recent(turns: RecentTurns | undefined) {
  return { turns: [...(turns?.counts ?? [])], turn_p95_ms: turns === undefined ? null : turns.p95Us / 1000 };
}

export function agent(
  definition: AgentDefinition,
  instanceCount: number,
  shownPulse: ShownPulse,
): z.input<typeof agentResult> {
  return {
    ...shownPulse,
    name: definition.kebab,
    class_name: definition.exportName,
    kind: "agent",
    is_built_in: definition.source === null,
    callable: [...definition.callables.values()].map(({ name, description, streaming }) => ({
      name,
      description: description ?? null,
      streaming: streaming ?? false,
      parameters: parametersOf(definition, name, streaming === true),
    })),
    instance_count: instanceCount,
  };
}

function parametersOf({ agentClass }: AgentDefinition, method: string, isStreaming: boolean) {
  const prototype = agentClass.prototype as unknown as Record<string, (...args: never[]) => unknown>;
  const found = prototype[method];
  const parameters = found === undefined ? null : parameterNames(found);
  if (parameters === null) return null;
  return parameters
    .slice(isStreaming ? 1 : 0)
    .map(({ name, isOptional, isRest }) => ({ name, optional: isOptional, rest: isRest }));
}

export function objectClass(
  agent: string,
  exportName: string,
  instanceCount: number,
  shownPulse: ShownPulse,
): z.input<typeof agentResult> {
  return {
    ...shownPulse,
    name: agent,
    class_name: exportName,
    kind: "object",
    is_built_in: false,
    callable: [],
    instance_count: instanceCount,
  };
}

/** The work of an object is its alarm. */
export function objectDetail({ nextDueAt }: CatalogEntry) {
  return { next_due_at: nextDueAt === null ? null : isoTime(nextDueAt) };
}

export function instance(
  entry: CatalogEntry,
  residency: Residency | undefined,
): z.input<typeof instanceResult> {
  return {
    agent: entry.agent,
    // `withNodes` knows it.
    node: null,
    name: entry.name,
    object_name: residency?.objectName ?? null,
    created_at: isoTime(entry.createdAt),
    last_active_at: isoTime(Math.max(entry.lastActiveAt, residency?.lastActiveAt ?? 0)),
    in_memory: residency?.isInMemory === true,
    connection_count: residency?.connectionCount ?? 0,
    queued: entry.figures.queued,
    retrying: entry.figures.retrying,
    dead_letters: entry.figures.deadLetters,
    last_error: entry.lastError,
    last_error_at: entry.lastErrorAt === null ? null : isoTime(entry.lastErrorAt),
    busy_since: residency?.turn == null ? null : isoTime(residency.turn.since),
    turn: residency?.turn == null ? null : { kind: residency.turn.kind, label: residency.turn.label },
    waiting_turns: residency?.waitingTurns ?? 0,
  };
}

export function failure({ id, at, kind, label, error }: Failure): z.input<typeof failureResult> {
  return { id, at: isoTime(at), kind, label, ...error };
}

/** The activity in memory with the stored failures, newest first. Failures outlive the memory. */
export function withFailures(
  recent: readonly ActivityEvent[],
  failures: readonly Failure[],
  { agent, name }: CatalogEntry,
): z.input<typeof activityResult>[] {
  const stored = new Map(failures.map((failure) => [failure.id, failure]));
  const events = recent.map((event) => {
    const id = String(event.detail["failure_id"] ?? "");
    const known = stored.get(id);
    stored.delete(id);
    return known === undefined ? event : { ...event, detail: { ...event.detail, ...failureDetail(known) } };
  });
  const earlier = [...stored.values()].map((failure) => ({
    type: "turn:error",
    agent,
    name,
    timestamp: isoTime(failure.at),
    detail: { kind: failure.kind, label: failure.label, ...failureDetail(failure) },
  }));
  return [...events, ...earlier].toSorted((a, b) => b.timestamp.localeCompare(a.timestamp));
}

function failureDetail({ id, error }: Failure) {
  return { error: error.message, error_name: error.name, stack: error.stack, failure_id: id };
}

export function readDetail(reader: InstanceReader) {
  const queueAt = reader.workQueue.nextAt();
  const scheduleAt = reader.schedules.nextAt();
  const dueAt =
    queueAt === null || scheduleAt === null ? (queueAt ?? scheduleAt) : Math.min(queueAt, scheduleAt);
  return {
    state: reader.state.committed ?? null,
    queue_count: reader.workQueue.count(),
    dead_letter_count: reader.deadLetters.count(),
    schedule_count: reader.schedules.count(),
    next_due_at: dueAt === null ? null : isoTime(dueAt),
  };
}

export function queueItem(item: QueueItem, running: boolean): z.input<typeof queueItemResult> {
  return {
    running,
    id: item.id,
    callback: item.callback,
    payload: item.payload ?? null,
    attempts: item.attempts,
    created_at: isoTime(item.createdAt),
    next_attempt_at: isoTime(item.nextAttemptAt),
    last_error: item.lastError,
  };
}

export function deadLetter(letter: DeadLetter): z.input<typeof deadLetterResult> {
  return {
    id: letter.id,
    item_id: letter.itemId,
    origin: letter.origin,
    callback: letter.callback,
    payload: letter.payload ?? null,
    attempts: letter.attempts,
    error: letter.error,
    created_at: isoTime(letter.createdAt),
    failed_at: isoTime(letter.failedAt),
  };
}

export function schedule(row: ScheduleState, running: boolean): z.input<typeof scheduleResult> {
  return {
    running,
    attempts: row.attempts,
    id: row.id,
    type: row.type,
    callback: row.callback,
    payload: row.payload ?? null,
    due_at: isoTime(row.time * 1000),
    cron: row.cron ?? null,
    interval_seconds: row.intervalSeconds ?? null,
  };
}

export function connection({ id, tags, isReadonly, uri }: LiveConnection): z.input<typeof connectionResult> {
  return { id, tags: [...tags], is_readonly: isReadonly, uri };
}

/** Blobs as base64 and large integers as strings, since JSON has neither. */
export function row(values: Readonly<Record<string, SqlValue>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      if (value instanceof Uint8Array) return [name, { base64: Buffer.from(value).toString("base64") }];
      return [name, typeof value === "bigint" ? String(value) : value];
    }),
  );
}

export function pageInfo(count: number, next: string | null): object {
  return { count, cursor: next, cursors: next === null ? {} : { after: next } };
}

/** The timeline of an instance: its last turns, and one of them with its payload and state changes. Reading loads no instance. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { isoTime } from "../../core/iso-time.ts";
import type { ProblemIndex } from "../instance/problem-index.ts";
import type { StateChanges } from "../instance/state-changes.ts";
import type { RecordSummary, Timeline } from "../instance/timeline.ts";
import type { InstanceAccess } from "./instance-access.ts";
import { defineInstanceRoute, INSTANCE, type InstanceRoute } from "./instance-route.ts";
import { pageInfo } from "./show-instance.ts";

export interface TimelineRouteParts {
  readonly access: InstanceAccess;
  readonly problems: ProblemIndex;
  /** Null if turns are not recorded. */
  readonly timeline: Timeline | null;
}

const summaryResult = z.object({
  id: z.string(),
  /** When the turn began. */
  at: z.iso.datetime(),
  duration_ms: z.number(),
  kind: z.string(),
  label: z.string(),
  /** The id of the event, of the queue item or of the schedule. */
  reference: z.string().nullable(),
  error: z.string().nullable(),
  /** The turn set the state. */
  changes_state: z.boolean(),
  /** Turns between the record before and this one that were not recorded, because there were too many. */
  skipped: z.int(),
});

const recordResult = summaryResult.extend({
  /** JSON text of at most some kilobytes; `…` marks what is left out. Null if there is none. */
  payload: z.string().nullable(),
  /** Values are JSON text of bounded length; null for a member that was added or removed. Null if the turn did not set the state. */
  state: z
    .object({
      changes: z.array(
        z.object({ path: z.array(z.string()), before: z.string().nullable(), after: z.string().nullable() }),
      ),
      truncated: z.boolean(),
    })
    .nullable(),
  stack: z.string().nullable(),
});

export function timelineRoutes(parts: TimelineRouteParts): InstanceRoute[] {
  return [list(parts), read(parts)];
}

function list({ access, timeline }: TimelineRouteParts): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: `${INSTANCE}/timeline`,
    access: "agents.read",
    summary:
      "List the instance's recorded turns of the last day, newest first; `kind` keeps one kind, `failed=true` those that failed.",
    query: z.object({
      cursor: z.string().max(64).optional(),
      limit: z.coerce.number().int().min(1).max(200).default(50),
      kind: z.string().max(32).optional(),
      failed: z.enum(["true", "false"]).default("false"),
    }),
    result: z.array(summaryResult),
    handler: async (request) => {
      const entry = await access.entry(request.ref);
      const { cursor, limit, kind, failed } = request.query;
      const found =
        (await timeline?.list(entry, {
          kind,
          failed: failed === "true",
          before: cursor,
          limit: limit + 1,
        })) ?? [];
      const records = found.slice(0, limit);
      const next = found.length > limit ? (records.at(-1)?.id ?? null) : null;
      return { result: records.map(summary), resultInfo: pageInfo(records.length, next) };
    },
  });
}

function read({ access, problems, timeline }: TimelineRouteParts): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: `${INSTANCE}/timeline/{turn_id}`,
    access: "agents.read",
    summary: "Read a recorded turn with its payload, its state changes and the stack of its error.",
    result: recordResult,
    handler: async (request) => {
      const entry = await access.entry(request.ref);
      const record = await timeline?.find(entry, request.params.turn_id);
      if (record === undefined)
        throw new SignalboxError("not_found", {
          message: "This turn is not recorded; records are kept for a day",
        });
      const failures = record.failure_id === null ? [] : await problems.failuresOf(entry);
      const state = record.state === null ? null : (JSON.parse(record.state) as StateChanges);
      return {
        result: {
          ...summary(record),
          payload: record.payload,
          state:
            state === null
              ? null
              : {
                  changes: state.changes.map((change) => ({ ...change, path: [...change.path] })),
                  truncated: state.isCut,
                },
          stack: failures.find(({ id }) => id === record.failure_id)?.error.stack ?? null,
        },
      };
    },
  });
}

function summary(record: RecordSummary): z.input<typeof summaryResult> {
  return {
    id: record.id,
    at: isoTime(record.at),
    duration_ms: record.duration_us / 1000,
    kind: record.kind,
    label: record.label,
    reference: record.reference,
    error: record.error,
    changes_state: record.changes_state === 1,
    skipped: record.skipped,
  };
}

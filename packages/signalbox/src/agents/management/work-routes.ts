/** The work of an instance: its queue, dead letters and schedules. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { changeLetters } from "./change-letters.ts";
import { type InstanceAccess, pageQuery } from "./instance-access.ts";
import { defineInstanceRoute, INSTANCE, type InstanceRoute } from "./instance-route.ts";
import * as show from "./show-instance.ts";

const QUEUE = `${INSTANCE}/queue`;
const QUEUE_ITEM = `${QUEUE}/{item_id}`;
const DEAD_LETTERS = `${INSTANCE}/dead-letters`;
const DEAD_LETTER = `${DEAD_LETTERS}/{dead_letter_id}`;
const SCHEDULES = `${INSTANCE}/schedules`;
const SCHEDULE = `${SCHEDULES}/{schedule_id}`;

export function workRoutes(access: InstanceAccess): InstanceRoute[] {
  return [
    listQueue(access),
    readQueueItem(access),
    removeQueueItem(access),
    runQueueItem(access),
    listDeadLetters(access),
    discardDeadLetters(access),
    readDeadLetter(access),
    discardDeadLetter(access),
    listSchedules(access),
    readSchedule(access),
    removeSchedule(access),
    runSchedule(access),
  ];
}

function listQueue(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: QUEUE,
    access: "agents.read",
    summary: "List the instance's waiting queue items, oldest first.",
    query: pageQuery,
    result: z.array(show.queueItemResult),
    handler: async (request) => {
      const after = parsePosition(request.query.cursor);
      const { items, next } = await access.read(request.ref, "queue", ({ workQueue, pump }) => {
        const page = workQueue.list(request.query.limit, after);
        return {
          ...page,
          items: page.items.map((item) => show.queueItem(item, pump.isRunning("queue", item.id))),
        };
      });
      return { result: items, resultInfo: show.pageInfo(items.length, next === null ? null : String(next)) };
    },
  });
}

function readQueueItem(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: QUEUE_ITEM,
    access: "agents.read",
    summary: "Read one queue item.",
    result: show.queueItemResult,
    handler: async (request) => {
      const { item_id: id } = request.params;
      const shown = await access.read(request.ref, "queue item", ({ workQueue, pump }) => {
        const item = workQueue.find(id);
        return item === undefined ? null : show.queueItem(item, pump.isRunning("queue", id));
      });
      if (shown === null) throw notFound("Queue item");
      return { result: shown };
    },
  });
}

function removeQueueItem(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "DELETE",
    path: QUEUE_ITEM,
    access: "agents.edit",
    summary: "Remove a waiting queue item. One that is running now is refused.",
    result: z.object({ id: z.string() }),
    handler: async (request) => {
      const { item_id: id } = request.params;
      await access.change(request.ref, "remove queue item", ({ workQueue, pump }) => {
        if (pump.isRunning("queue", id)) throw running("item", "removed");
        if (!workQueue.remove(id)) throw notFound("Queue item");
      });
      return { result: { id } };
    },
  });
}

function runQueueItem(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "POST",
    effect: "action",
    path: `${QUEUE_ITEM}/run`,
    access: "agents.edit",
    summary: "Move a waiting queue item to the front of the queue and end its delay.",
    body: z.strictObject({}),
    result: z.object({ id: z.string(), next_attempt_at: z.iso.datetime() }),
    handler: async (request) => {
      const { item_id: id } = request.params;
      const item = await access.change(request.ref, "run queue item", ({ workQueue, pump }) => {
        if (pump.isRunning("queue", id)) throw running("item", "run again");
        if (!workQueue.moveToFront(id)) throw notFound("Queue item");
        return workQueue.find(id);
      });
      return { result: { id, next_attempt_at: new Date(item?.nextAttemptAt ?? 0).toISOString() } };
    },
  });
}

function listDeadLetters(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: DEAD_LETTERS,
    access: "agents.read",
    summary: "List work that used up its attempts, oldest first.",
    query: pageQuery,
    result: z.array(show.deadLetterResult),
    handler: async (request) => {
      const { items, next } = await access.read(request.ref, "dead letters", ({ deadLetters }) =>
        deadLetters.list(request.query.limit, request.query.cursor),
      );
      return { result: items.map(show.deadLetter), resultInfo: show.pageInfo(items.length, next) };
    },
  });
}

function discardDeadLetters(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "DELETE",
    path: DEAD_LETTERS,
    access: "agents.edit",
    summary: "Discard all dead letters of the instance, at most 10,000 with each call.",
    result: z.object({ discarded: z.int(), remaining: z.int() }),
    handler: async (request) => {
      const { count: discarded, remaining } = await changeLetters(
        access,
        request.ref,
        "discard",
        undefined,
        (letters, id) => letters.remove(id),
      );
      return { result: { discarded, remaining } };
    },
  });
}

function readDeadLetter(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: DEAD_LETTER,
    access: "agents.read",
    summary: "Read one dead letter.",
    result: show.deadLetterResult,
    handler: async (request) => {
      const { dead_letter_id: id } = request.params;
      const letter = await access.read(request.ref, "dead letter", ({ deadLetters }) => deadLetters.find(id));
      if (letter === undefined) throw notFound("Dead letter");
      return { result: show.deadLetter(letter) };
    },
  });
}

function discardDeadLetter(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "DELETE",
    path: DEAD_LETTER,
    access: "agents.edit",
    summary: "Discard one dead letter.",
    result: z.object({ id: z.string() }),
    handler: async (request) => {
      const { dead_letter_id: id } = request.params;
      if (!(await access.change(request.ref, "discard", ({ deadLetters }) => deadLetters.remove(id)))) {
        throw notFound("Dead letter");
      }
      return { result: { id } };
    },
  });
}

function listSchedules(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: SCHEDULES,
    access: "agents.read",
    summary: "List the instance's schedules, by due time.",
    result: z.array(show.scheduleResult),
    handler: async (request) => {
      const items = await access.read(request.ref, "schedules", ({ schedules, pump }) =>
        schedules.states().map((row) => show.schedule(row, pump.isRunning("schedule", row.id))),
      );
      return { result: items, resultInfo: { count: items.length } };
    },
  });
}

function readSchedule(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: SCHEDULE,
    access: "agents.read",
    summary: "Read one schedule.",
    result: show.scheduleResult,
    handler: async (request) => {
      const { schedule_id: id } = request.params;
      const shown = await access.read(request.ref, "schedule", ({ schedules, pump }) => {
        const [row] = schedules.states(id);
        return row === undefined ? null : show.schedule(row, pump.isRunning("schedule", id));
      });
      if (shown === null) throw notFound("Schedule");
      return { result: shown };
    },
  });
}

function removeSchedule(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "DELETE",
    path: SCHEDULE,
    access: "agents.edit",
    summary: "Cancel a schedule. One that runs once and is running now is refused.",
    result: z.object({ id: z.string() }),
    handler: async (request) => {
      const { schedule_id: id } = request.params;
      await access.change(request.ref, "cancel schedule", ({ schedules, pump }) => {
        const found = schedules.find(id);
        if (found === undefined) throw notFound("Schedule");
        // A recurring one can be cancelled while it runs: it does not run again.
        const isRecurring = found.type === "cron" || found.type === "interval";
        if (!isRecurring && pump.isRunning("schedule", id)) throw running("schedule", "cancelled");
        schedules.cancel(id);
      });
      return { result: { id } };
    },
  });
}

function runSchedule(access: InstanceAccess): InstanceRoute {
  return defineInstanceRoute({
    method: "POST",
    effect: "action",
    path: `${SCHEDULE}/run`,
    access: "agents.edit",
    summary: "Run a schedule now; a recurring one keeps its next time.",
    body: z.strictObject({}),
    result: z.object({ id: z.string(), due_at: z.iso.datetime() }),
    handler: async (request) => {
      const { schedule_id: id } = request.params;
      const found = await access.change(request.ref, "run schedule", ({ schedules, pump }) => {
        if (pump.isRunning("schedule", id)) throw running("schedule", "run again");
        if (!schedules.runNow(id)) throw notFound("Schedule");
        return schedules.find(id);
      });
      return { result: { id, due_at: new Date((found?.time ?? 0) * 1000).toISOString() } };
    },
  });
}

function notFound(what: string): SignalboxError {
  return new SignalboxError("not_found", { message: `${what} not found` });
}

function running(what: string, verb: string): SignalboxError {
  return new SignalboxError("conflict", {
    message: `The ${what} is running now; it can be ${verb} when this attempt has ended`,
  });
}

/** A position may be below 1: items that were moved to the front. */
function parsePosition(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  if (!/^-?\d{1,15}$/.test(cursor))
    throw new SignalboxError("invalid_request", { message: "cursor: not a cursor of this list" });
  return Number(cursor);
}

/** The work of an instance: its queue, dead letters and schedules. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import { INSTANCE, type InstanceAccess, pageQuery } from "./instance-access.ts";
import * as show from "./show-instance.ts";

const DEAD_LETTERS = `${INSTANCE}/dead-letters`;
const DEAD_LETTER = `${DEAD_LETTERS}/{dead_letter_id}`;

export function workRoutes(access: InstanceAccess): Route[] {
  return [
    listQueue(access),
    listDeadLetters(access),
    replayDeadLetters(access),
    readDeadLetter(access),
    discardDeadLetter(access),
    listSchedules(access),
  ];
}

function listQueue(access: InstanceAccess): Route {
  return defineRoute({
    method: "GET",
    path: `${INSTANCE}/queue`,
    access: "agents.read",
    summary: "List the instance's waiting queue items, oldest first.",
    query: pageQuery,
    result: z.array(show.queueItemResult),
    handler: async (request) => {
      const after = parsePosition(request.query.cursor);
      const { items, next } = await access.read(request, "queue", ({ workQueue }) =>
        workQueue.list(request.query.limit, after),
      );
      return {
        result: items.map(show.queueItem),
        resultInfo: show.pageInfo(items.length, next === null ? null : String(next)),
      };
    },
  });
}

function listDeadLetters(access: InstanceAccess): Route {
  return defineRoute({
    method: "GET",
    path: DEAD_LETTERS,
    access: "agents.read",
    summary: "List work that used up its attempts, oldest first.",
    query: pageQuery,
    result: z.array(show.deadLetterResult),
    handler: async (request) => {
      const { items, next } = await access.read(request, "dead letters", ({ deadLetters }) =>
        deadLetters.list(request.query.limit, request.query.cursor),
      );
      return { result: items.map(show.deadLetter), resultInfo: show.pageInfo(items.length, next) };
    },
  });
}

function replayDeadLetters(access: InstanceAccess): Route {
  return defineRoute({
    method: "POST",
    path: `${DEAD_LETTERS}/replay`,
    access: "agents.edit",
    summary: "Return dead letters to the queue: those named in `ids`, or all.",
    body: z.strictObject({ ids: z.array(z.string()).max(1000).optional() }),
    result: z.object({ replayed: z.int() }),
    handler: async (request) => {
      const replayed = await access.change(request, "replay", ({ deadLetters }) => {
        const ids =
          request.body.ids ?? deadLetters.list(Number.MAX_SAFE_INTEGER - 1).items.map(({ id }) => id);
        return ids.filter((id) => deadLetters.replay(id)).length;
      });
      return { result: { replayed } };
    },
  });
}

function readDeadLetter(access: InstanceAccess): Route {
  return defineRoute({
    method: "GET",
    path: DEAD_LETTER,
    access: "agents.read",
    summary: "Read one dead letter.",
    result: show.deadLetterResult,
    handler: async (request) => {
      const id = request.params["dead_letter_id"] ?? "";
      const letter = await access.read(request, "dead letter", ({ deadLetters }) => deadLetters.find(id));
      if (letter === undefined) throw deadLetterNotFound();
      return { result: show.deadLetter(letter) };
    },
  });
}

function discardDeadLetter(access: InstanceAccess): Route {
  return defineRoute({
    method: "DELETE",
    path: DEAD_LETTER,
    access: "agents.edit",
    summary: "Discard one dead letter.",
    result: z.object({ id: z.string() }),
    handler: async (request) => {
      const id = request.params["dead_letter_id"] ?? "";
      if (!(await access.change(request, "discard", ({ deadLetters }) => deadLetters.remove(id)))) {
        throw deadLetterNotFound();
      }
      return { result: { id } };
    },
  });
}

function listSchedules(access: InstanceAccess): Route {
  return defineRoute({
    method: "GET",
    path: `${INSTANCE}/schedules`,
    access: "agents.read",
    summary: "List the instance's schedules, by due time.",
    result: z.array(show.scheduleResult),
    handler: async (request) => {
      const items = await access.read(request, "schedules", ({ schedules }) => schedules.list());
      return { result: items.map(show.schedule), resultInfo: { count: items.length } };
    },
  });
}

function deadLetterNotFound(): SignalboxError {
  return new SignalboxError("not_found", { message: "Dead letter not found" });
}

function parsePosition(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (!/^\d{1,15}$/.test(cursor))
    throw new SignalboxError("invalid_request", { message: "cursor: not a cursor of this list" });
  return Number(cursor);
}

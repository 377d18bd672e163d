/** Management routes of events and their attempts. */
import { isUtf8 } from "node:buffer";
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Route as ManagementRoute } from "../../http/route.ts";
import { type AttemptRecord, EVENT_STATES, type RoutedEvent, type StoredDelivery } from "./event-record.ts";
import type { EventQuery, StateContext } from "./event-search.ts";
import { stateOf } from "./event-table.ts";
import type { Routing } from "./routing.ts";

const EVENTS = "/accounts/{account_id}/webhooks/events";
const PAGE_SIZE = 100;

const time = z.iso.datetime({ offset: true }).max(64);

/** What lists and bulk replays have in common. */
export const eventFilters = {
  source: z.string().max(64).optional(),
  route: z.string().max(64).optional(),
  type: z.string().max(256).optional(),
  entity: z.string().max(512).optional(),
  /** Id of an issue. */
  issue: z.string().max(64).optional(),
  /** A part of the body. */
  text: z.string().min(1).max(256).optional(),
  /** Times of arrival: from `since` on, and before `until`. */
  since: time.optional(),
  until: time.optional(),
};

const listQuery = z.strictObject({
  ...eventFilters,
  state: z.enum(EVENT_STATES).optional(),
  /** Id of a delivery. */
  delivery: z.string().max(64).optional(),
  /** Id of a bulk replay. */
  replay: z.string().max(64).optional(),
  cursor: z.string().max(64).optional(),
  limit: z.coerce.number().int().min(1).max(PAGE_SIZE).default(PAGE_SIZE),
});

const eventResult = z.object({
  id: z.string(),
  source: z.string(),
  route: z.string(),
  delivery: z.string(),
  type: z.string(),
  entity: z.string().nullable(),
  received_at: z.iso.datetime(),
  state: z.enum(EVENT_STATES),
  /** Why it was ignored or cancelled, or why the last attempt failed. */
  reason: z.string().nullable(),
  attempts: z.int(),
  next_attempt_at: z.iso.datetime().nullable(),
  is_attempting: z.boolean(),
  replay: z.string().nullable(),
  /** The issue that it belongs to since it failed. */
  issue: z.string().nullable(),
});

const attemptResult = z.object({
  id: z.string(),
  number: z.int(),
  trigger: z.enum(["initial", "automatic", "manual", "bulk"]),
  started_at: z.iso.datetime(),
  duration_ms: z.int(),
  outcome: z.enum(["delivered", "failed"]),
  status: z.int().nullable(),
  error: z.string().nullable(),
  request: z
    .object({ method: z.string(), url: z.string(), headers: z.record(z.string(), z.string()) })
    .nullable(),
  response: z
    .object({
      headers: z.record(z.string(), z.string()),
      body: z.string(),
      body_encoding: z.enum(["utf8", "base64"]),
    })
    .nullable(),
});

const eventDetail = eventResult.extend({
  /** What arrived; null if it is not kept any more. */
  payload: z
    .object({
      content_type: z.string().nullable(),
      headers: z.record(z.string(), z.string()),
      path: z.string(),
      body: z.string(),
      body_encoding: z.enum(["utf8", "base64"]),
    })
    .nullable(),
  attempt_list: z.array(attemptResult),
});

export function toEventQuery(filters: {
  readonly [Name in keyof typeof eventFilters]?: string | undefined;
}): EventQuery {
  const { since, until, ...rest } = filters;
  return {
    ...rest,
    since: since === undefined ? undefined : Date.parse(since),
    until: until === undefined ? undefined : Date.parse(until),
  };
}

export function eventRoutes({ routing }: { readonly routing: Routing }): ManagementRoute[] {
  const { table, search, clock } = routing;
  const find = async (accountId: string, id: string) => {
    const event = await table.find(accountId, id);
    if (event === undefined) throw new SignalboxError("not_found", { message: "Event not found" });
    return event;
  };
  const show = async (accountId: string, id: string) =>
    showEvent(await find(accountId, id), routing.stateContext(accountId));
  return [
    defineRoute({
      method: "GET",
      path: EVENTS,
      access: "webhooks.read",
      summary:
        "List events of webhook routes, newest first, with filters. A search looks at events for some seconds; `scanned` says at how many, and the cursor goes on.",
      query: listQuery,
      result: z.array(eventResult),
      handler: async ({ params, query, signal }) => {
        const { account_id: accountId } = params;
        const { cursor, limit, state, delivery, replay, ...filters } = query;
        const context = routing.stateContext(accountId);
        const asked = { ...toEventQuery(filters), state, delivery, replay };
        const { events, next, scanned } = await search.list(accountId, asked, context, {
          cursor,
          limit,
          signal,
        });
        return {
          result: events.map((event) => showEvent(event, context)),
          resultInfo: {
            count: events.length,
            ...(scanned === null ? {} : { scanned }),
            cursor: next,
            cursors: next === null ? {} : { after: next },
          },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${EVENTS}/{event_id}`,
      access: "webhooks.read",
      summary: "Read one event with what arrived and its attempts: request and response.",
      result: eventDetail,
      handler: async ({ params }) => {
        const { account_id: accountId } = params;
        const event = await find(accountId, params.event_id);
        const delivery = await table.ownDelivery(accountId, event.delivery);
        const attempts = await table.attemptsOf(accountId, event.id);
        return {
          result: {
            ...showEvent(event, routing.stateContext(accountId)),
            payload: delivery === undefined ? null : showPayload(delivery),
            attempt_list: attempts.map(showAttempt),
          },
        };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${EVENTS}/{event_id}/replay`,
      access: "webhooks.edit",
      summary: "Deliver an event that has ended again, also one that a filter ignored.",
      result: eventResult,
      handler: async ({ params }) => {
        const { account_id: accountId } = params;
        const event = await find(accountId, params.event_id);
        if (routing.routes.byKey(JSON.stringify([accountId, event.source, event.name])) === undefined)
          throw new SignalboxError("conflict", {
            message: `The route ${event.name} does not exist any more`,
          });
        if (!(await table.replayOne(event, clock.now())))
          throw new SignalboxError("conflict", { message: "This event is still waiting" });
        routing.dispatcher.wake([JSON.stringify([accountId, event.source, event.name])]);
        return { result: await show(accountId, event.id) };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${EVENTS}/{event_id}/cancel`,
      access: "webhooks.edit",
      summary: "Cancel an event that waits; an attempt that runs ends as usual.",
      result: eventResult,
      handler: async ({ params }) => {
        const { account_id: accountId } = params;
        const { id } = await find(accountId, params.event_id);
        if (!(await table.cancelOne(accountId, id)))
          throw new SignalboxError("conflict", { message: "This event has ended" });
        return { result: await show(accountId, id) };
      },
    }),
  ];
}

function showEvent(event: RoutedEvent, { now, paused }: StateContext): z.input<typeof eventResult> {
  const isPaused = paused.some(({ source, name }) => source === event.source && name === event.name);
  const state = stateOf(event, isPaused, now);
  const isTimed = state === "scheduled" || state === "queued";
  return {
    id: event.id,
    source: event.source,
    route: event.name,
    delivery: event.delivery,
    type: event.type,
    entity: event.entity,
    received_at: new Date(event.receivedAt).toISOString(),
    state,
    reason: event.reason,
    attempts: event.attempts,
    next_attempt_at:
      isTimed && !event.isAttempting && event.dueAt !== null ? new Date(event.dueAt).toISOString() : null,
    is_attempting: event.isAttempting && event.state === "waiting",
    replay: event.replay,
    issue: event.issue,
  };
}

function showPayload({ contentType, headers, target, body }: StoredDelivery) {
  return { content_type: contentType, headers: { ...headers }, path: target, ...showBytes(body) };
}

function showAttempt(attempt: AttemptRecord): z.input<typeof attemptResult> {
  return {
    id: attempt.id,
    number: attempt.number,
    trigger: attempt.cause,
    started_at: new Date(attempt.startedAt).toISOString(),
    duration_ms: attempt.durationMs,
    outcome: attempt.outcome,
    status: attempt.status,
    error: attempt.error,
    request:
      attempt.request === null ? null : { ...attempt.request, headers: { ...attempt.request.headers } },
    response:
      attempt.response === null
        ? null
        : { headers: { ...attempt.responseHeaders }, ...showBytes(attempt.response) },
  };
}

function showBytes(bytes: Uint8Array): { body: string; body_encoding: "utf8" | "base64" } {
  const encoding = isUtf8(bytes) ? "utf8" : "base64";
  return { body: Buffer.from(bytes).toString(encoding), body_encoding: encoding };
}

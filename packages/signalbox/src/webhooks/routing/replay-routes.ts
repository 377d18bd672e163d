/** Management routes of bulk replays. */
import { z } from "zod";
import { defineRoute, type Route as ManagementRoute } from "../../http/route.ts";
import type { StoredState } from "./event-record.ts";
import { eventFilters, toEventQuery } from "./event-routes.ts";
import type { Replay, ReplayPlan } from "./replays.ts";
import type { Routing } from "./routing.ts";

const REPLAYS = "/accounts/{account_id}/webhooks/replays";
const PAGE_SIZE = 100;

const replayBody = z.strictObject({
  ...eventFilters,
  /** Of the events to replay. Ignored ones are replayed if the filters match now. Default `failed`. */
  state: z.enum(["delivered", "failed", "cancelled", "ignored"]).default("failed"),
  /** Only counts. */
  dry_run: z.boolean().default(false),
});

const planResult = z.object({
  count: z.int(),
  oldest: z.iso.datetime().nullable(),
  newest: z.iso.datetime().nullable(),
  routes: z.array(z.object({ source: z.string(), route: z.string(), count: z.int() })),
});

const replayResult = z.object({
  id: z.string(),
  query: z.record(z.string(), z.unknown()),
  state: z.enum(["running", "done", "cancelled"]),
  /** Events that the query found. */
  total: z.int(),
  queued: z.int(),
  /** They were waiting, or their route ignores them still. */
  skipped: z.int(),
  created_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
});

const replayDetail = replayResult.extend({
  /** What has become of the queued events. */
  results: z.object({ waiting: z.int(), delivered: z.int(), failed: z.int(), cancelled: z.int() }),
});

export function replayRoutes({ routing }: { readonly routing: Routing }): ManagementRoute[] {
  const { replays } = routing;
  return [
    defineRoute({
      method: "POST",
      effect: "create",
      path: REPLAYS,
      access: "webhooks.edit",
      summary:
        "Replay all events that match: delivered at the rate of their routes, oldest first. With `dry_run` only say how many, from when to when, and of which routes.",
      body: replayBody,
      result: z.union([replayResult, planResult]),
      handler: async ({ params, body, signal }) => {
        const { account_id: accountId } = params;
        const { dry_run: isDry, state, ...filters } = body;
        const query = { ...toEventQuery(filters), state };
        if (isDry) return { result: showPlan(await replays.plan(accountId, query, signal)) };
        return { result: show(await replays.create(accountId, query, signal)) };
      },
    }),
    defineRoute({
      method: "GET",
      path: REPLAYS,
      access: "webhooks.read",
      summary: "List bulk replays, newest first.",
      query: z.strictObject({
        cursor: z.string().max(64).optional(),
        limit: z.coerce.number().int().min(1).max(PAGE_SIZE).default(PAGE_SIZE),
      }),
      result: z.array(replayResult),
      handler: async ({ params, query: { cursor, limit } }) => {
        const found = await replays.list(params.account_id, cursor, limit + 1);
        const page = found.slice(0, limit);
        const next = found.length > limit ? (page.at(-1)?.id ?? null) : null;
        return {
          result: page.map(show),
          resultInfo: { count: page.length, cursor: next, cursors: next === null ? {} : { after: next } },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${REPLAYS}/{replay_id}`,
      access: "webhooks.read",
      summary: "Read the progress and the results of a bulk replay.",
      result: replayDetail,
      handler: async ({ params }) => {
        const { account_id: accountId, replay_id: id } = params;
        // Before its progress: an event that has a result then counts as queued.
        const results = await replays.results(accountId, id);
        const replay = await replays.find(accountId, id);
        return { result: { ...show(replay), results: showResults(results) } };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${REPLAYS}/{replay_id}/cancel`,
      access: "webhooks.edit",
      summary: "Cancel a bulk replay: it queues nothing more, and its events that wait are cancelled.",
      result: replayResult,
      handler: async ({ params }) => ({
        result: show(await replays.cancel(params.account_id, params.replay_id)),
      }),
    }),
  ];
}

function showPlan({ count, oldest, newest, routes }: ReplayPlan): z.input<typeof planResult> {
  return {
    count,
    oldest: oldest === null ? null : new Date(oldest).toISOString(),
    newest: newest === null ? null : new Date(newest).toISOString(),
    routes: routes.map(({ source, route, count: own }) => ({ source, route, count: own })),
  };
}

function show(replay: Replay): z.input<typeof replayResult> {
  const { since, until, ...query } = replay.query;
  return {
    id: replay.id,
    query: {
      ...query,
      ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
      ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
    },
    state: replay.state,
    total: replay.total,
    queued: replay.queued,
    skipped: replay.skipped,
    created_at: new Date(replay.createdAt).toISOString(),
    ended_at: replay.endedAt === null ? null : new Date(replay.endedAt).toISOString(),
  };
}

function showResults(found: ReadonlyMap<StoredState, number>) {
  return {
    waiting: found.get("waiting") ?? 0,
    delivered: found.get("delivered") ?? 0,
    failed: found.get("failed") ?? 0,
    cancelled: found.get("cancelled") ?? 0,
  };
}

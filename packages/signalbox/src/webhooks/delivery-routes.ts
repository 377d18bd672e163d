/** Management routes of the inspector: deliveries, their counts, and replay. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import type { Clock } from "../core/clock.ts";
import { storedErrorText, toStoredError } from "../core/stored-error.ts";
import { defineRoute, type Route } from "../http/route.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import { DELIVERY_STATUSES, type DeliveryFilter, type DeliveryRecord } from "./delivery-record.ts";
import { type BulkReplay, replayFailed } from "./bulk-replay.ts";
import type { Intake } from "./intake.ts";
import type { RejectionBudget } from "./rejection-budget.ts";
import type { Routing } from "./routing/index.ts";
import { deliveryDetail, deliveryDetailResult, deliveryResult, errorResult, showDelivery } from "./show.ts";
import type { Source } from "./source.ts";
import { summaryResult, showSummary } from "./show-summary.ts";

export interface DeliveryRouteParts {
  readonly sources: ReadonlyMap<string, Source>;
  readonly log: DeliveryLog;
  readonly intake: Intake;
  readonly rejections: RejectionBudget;
  readonly routing: Pick<Routing, "table">;
  readonly clock: Clock;
}

const DELIVERIES = "/accounts/{account_id}/webhooks/deliveries";
const PAGE_SIZE = 100;

const time = z.iso.datetime({ offset: true }).max(64);

const filters = {
  source: z.string().max(64).optional(),
  reason: z.string().max(64).optional(),
  instance: z.string().max(512).optional(),
  type: z.string().max(256).optional(),
  /** Times of arrival: from `since` on, and before `until`. */
  since: time.optional(),
  until: time.optional(),
};

/** Strict: a misspelt filter must not be ignored. */
const listQuery = z.strictObject({
  ...filters,
  status: z.enum(DELIVERY_STATUSES).optional(),
  delivery_id: z.string().max(512).optional(),
  /** A part of the instance, an id, the type, the title or the body. */
  search: z.string().min(1).max(256).optional(),
  /** Only failed deliveries that were neither replayed nor accepted later. */
  unresolved: z.enum(["true", "false"]).optional(),
  /** Continues a list. */
  cursor: z.string().max(64).optional(),
  /** Deliveries after this one, oldest first. */
  after: z.string().max(64).optional(),
  limit: z.coerce.number().int().min(1).max(PAGE_SIZE).default(PAGE_SIZE),
});

const replayBody = z.strictObject({
  ...filters,
  limit: z.int().min(1).max(1000).default(PAGE_SIZE),
  cursor: z.string().max(64).optional(),
});

type Filters = { readonly [Name in keyof typeof filters]?: string | undefined };

export function deliveryRoutes(parts: DeliveryRouteParts): Route[] {
  return [list(parts), summary(parts), histogram(parts), replayMany(parts), read(parts), replayOne(parts)];
}

function list({ log }: DeliveryRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: DELIVERIES,
    access: "webhooks.read",
    summary:
      "List deliveries, newest first, with filters; a search looks at deliveries for some seconds, `scanned` says at how many, and the cursor goes on; with `after`, deliveries since then, oldest first; with `unresolved=true`, failed ones that nobody has replayed and the provider has not repeated with success.",
    query: listQuery,
    result: z.array(deliveryResult),
    handler: async ({ params, query, signal }) => {
      const { account_id: accountId } = params;
      const { cursor, after, limit, delivery_id: deliveryId, status, unresolved, ...rest } = query;
      const filter = { ...toFilter(rest), deliveryId, status, isUnresolved: unresolved === "true" };
      if (after !== undefined) {
        const records = await log.since(accountId, filter, after, limit);
        return { result: records.map(showDelivery), resultInfo: { count: records.length } };
      }
      const { records, next, scanned } = await log.list(accountId, filter, cursor, limit, signal);
      return {
        result: records.map(showDelivery),
        resultInfo: {
          count: records.length,
          ...(scanned === null ? {} : { scanned }),
          cursor: next,
          cursors: next === null ? {} : { after: next },
        },
      };
    },
  });
}

function summary({ log, rejections }: DeliveryRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: `${DELIVERIES}/summary`,
    access: "webhooks.read",
    summary: "Count the listed deliveries by source and outcome, and those that fail and need somebody.",
    query: z.strictObject({ since: time.optional(), until: time.optional() }),
    result: summaryResult,
    handler: async ({ params, query }) => {
      const { account_id: accountId } = params;
      const times = toFilter(query);
      const counted = await log.summary(accountId, times);
      const lastErrors = new Map<string, string>();
      for (const { source, lastId } of counted.unresolved) {
        const record = await log.find(accountId, lastId);
        if (record?.error != null) lastErrors.set(source, storedErrorText(record.error));
      }
      return {
        result: showSummary(counted, {
          ...query,
          lastErrors,
          // What is counted now belongs to no listed row yet.
          unlisted: (source) => (times.until === undefined ? rejections.unlisted(source) : 0),
        }),
      };
    },
  });
}

const MAX_STEPS = 1000;

const histogramQuery = z
  .strictObject({
    ...filters,
    search: z.string().min(1).max(256).optional(),
    since: time,
    until: time,
    step_seconds: z.coerce
      .number()
      .int()
      .min(60)
      .max(366 * 86_400),
  })
  .refine(
    ({ since, until, step_seconds: step }) =>
      Date.parse(until) - Date.parse(since) <= MAX_STEPS * step * 1000,
    { error: `the times have more than ${MAX_STEPS} steps`, path: ["step_seconds"] },
  );

function histogram({ log }: DeliveryRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: `${DELIVERIES}/histogram`,
    access: "webhooks.read",
    summary:
      "Count the listed deliveries by outcome in steps of time, for a chart; steps without deliveries are left out.",
    query: histogramQuery,
    result: z.array(
      z.object({
        /** The beginning of the step, which is a multiple of its length since 1970. */
        at: z.iso.datetime(),
        accepted: z.int(),
        duplicate: z.int(),
        rejected: z.int(),
        failed: z.int(),
      }),
    ),
    handler: async ({ params, query, signal }) => {
      const { step_seconds: seconds, search, ...rest } = query;
      const filter = { ...toFilter(rest), search };
      const counted = await log.histogram(params.account_id, filter, seconds * 1000, signal);
      const none = { accepted: 0, duplicate: 0, rejected: 0, failed: 0 };
      const steps = new Map<number, typeof none>();
      for (const { at, status, count } of counted) {
        const known = steps.get(at) ?? none;
        steps.set(at, { ...known, [status]: known[status] + count });
      }
      const result = [...steps]
        .toSorted(([a], [b]) => a - b)
        .map(([at, counts]) => ({ at: new Date(at).toISOString(), ...counts }));
      return { result, resultInfo: { count: result.length } };
    },
  });
}

function read({ log, routing }: DeliveryRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: `${DELIVERIES}/{delivery}`,
    access: "webhooks.read",
    summary:
      "Read one delivery with its headers and body, the error of the agent's handler, and for a rejected one what is known of the request.",
    result: deliveryDetailResult,
    handler: async ({ params }) => {
      const { account_id: accountId, delivery: id } = params;
      const record = await findDelivery(log, accountId, id);
      // The body of a delivery that was stored for routes is with its events.
      const stored = record.body === null ? await routing.table.ownDelivery(accountId, id) : undefined;
      return { result: deliveryDetail(stored === undefined ? record : { ...record, body: stored.body }) };
    },
  });
}

function replayOne(parts: DeliveryRouteParts): Route {
  return defineRoute({
    method: "POST",
    effect: "action",
    path: `${DELIVERIES}/{delivery}/replay`,
    access: "webhooks.edit",
    summary: "Deliver a stored delivery to its agent again; `error` says why the agent failed.",
    result: z.object({ status: z.string(), event_id: z.string(), error: errorResult.nullable() }),
    handler: async ({ params }) => {
      const record = await findDelivery(parts.log, params.account_id, params.delivery);
      const source = parts.sources.get(record.source);
      if ((await parts.routing.table.ownDelivery(record.accountId, record.id)) !== undefined) {
        throw new SignalboxError("conflict", {
          message: "This delivery was stored for the routes of its source: replay its events",
        });
      }
      if (source === undefined || !isReplayable(record)) {
        throw new SignalboxError("conflict", {
          message: "This delivery was refused, or its body was not kept, so it cannot be replayed",
        });
      }
      // A failed delivery is not in the ledger, so it keeps its id and still runs at most once.
      const isRepeat = record.status !== "failed";
      const replayed = parts.intake.replay(source, record, isRepeat);
      try {
        const { outcome, eventId } = await replayed;
        const hasFailed = outcome.kind === "answered" && (outcome.status < 200 || outcome.status > 299);
        if (!isRepeat && !hasFailed)
          await parts.log.markReplayed(record.accountId, record.id, parts.clock.now());
        return { result: { status: outcome.kind, event_id: eventId, error: null } };
      } catch (error) {
        // Refusals of the service, such as an overload, are answered as such.
        if (error instanceof SignalboxError && error.id !== "webhook_rejected" && error.id !== "internal")
          throw error;
        return { result: { status: "failed", event_id: record.deliveryId, error: toStoredError(error) } };
      }
    },
  });
}

const bulkResult = z.object({
  matched: z.int(),
  replayed: z.int(),
  failed: z.array(z.object({ id: z.string(), error: z.string() })),
  skipped: z.int(),
  cursor: z.string().nullable(),
});

function replayMany(parts: DeliveryRouteParts): Route {
  return defineRoute({
    method: "POST",
    effect: "action",
    path: `${DELIVERIES}/replay`,
    access: "webhooks.edit",
    summary:
      "Deliver failed deliveries that are unresolved to their agents again, oldest first, with filters; call again with `cursor` until it is null.",
    body: replayBody,
    result: bulkResult,
    handler: async ({ params, body, signal }) => {
      const { limit, cursor, ...rest } = body;
      const filter: DeliveryFilter = { ...toFilter(rest), isUnresolved: true };
      const work: BulkReplay = { accountId: params.account_id, filter, after: cursor ?? "", limit, signal };
      return { result: await replayFailed({ ...parts, isReplayable }, work) };
    },
  });
}

function isReplayable(record: DeliveryRecord): boolean {
  return record.status !== "rejected" && record.instance !== "" && record.body !== null;
}

async function findDelivery(log: DeliveryLog, accountId: string, id: string): Promise<DeliveryRecord> {
  const record = await log.find(accountId, id);
  if (record === undefined) throw new SignalboxError("not_found", { message: "Delivery not found" });
  return record;
}

function toFilter({ since, until, ...rest }: Filters): DeliveryFilter {
  return {
    ...rest,
    since: since === undefined ? undefined : Date.parse(since),
    until: until === undefined ? undefined : Date.parse(until),
  };
}

/** Management routes of webhooks: sources, samples, the inspector and replay. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import type { Clock } from "../core/clock.ts";
import { ulid } from "../core/ulid.ts";
import { defineRoute, type Route } from "../http/route.ts";
import type { TagLookup } from "../contracts/tag-lookup.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import { DELIVERY_STATUSES } from "./delivery-record.ts";
import type { Intake } from "./intake.ts";
import type { LateDeliveries } from "./late-deliveries.ts";
import type { LateDeliveryTable } from "./late-delivery-table.ts";
import { lateDeliveryRoutes } from "./late-delivery-routes.ts";
import { createSampleRequest } from "./sample-delivery.ts";
import {
  deliveryDetail,
  deliveryDetailResult,
  deliveryResult,
  showDelivery,
  showSource,
  sourceResult,
} from "./show.ts";
import type { Source } from "./source.ts";

export interface RouteParts {
  readonly sources: ReadonlyMap<string, Source>;
  readonly log: DeliveryLog;
  readonly intake: Intake;
  readonly late: LateDeliveries;
  readonly lateTable: LateDeliveryTable;
  readonly clock: Clock;
  readonly tags: TagLookup | undefined;
}

const PAGE_SIZE = 100;
/** The entity of a sample without one. A name like a repository's suits every source. */
const SAMPLE_ENTITY = "sample/entity";

/** Strict: a misspelt filter must not be ignored. */
const listQuery = z.strictObject({
  source: z.string().max(64).optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
  instance: z.string().max(512).optional(),
  type: z.string().max(256).optional(),
  delivery_id: z.string().max(512).optional(),
  /** Continues a list. */
  cursor: z.string().max(64).optional(),
  /** Deliveries after this one, oldest first. */
  after: z.string().max(64).optional(),
  limit: z.coerce.number().int().min(1).max(PAGE_SIZE).default(PAGE_SIZE),
});

const testBody = z.strictObject({
  entity: z.string().min(1).max(512).optional(),
  /** A JSON payload instead of the sample's. */
  payload: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]).optional(),
  headers: z.record(z.string(), z.string()).optional(),
});

export function webhookRoutes(parts: RouteParts): Route[] {
  return [...sourceRoutes(parts), ...deliveryRoutes(parts), ...lateDeliveryRoutes(parts)];
}

function sourceRoutes({ sources, intake, clock, tags }: RouteParts): Route[] {
  const path = "/accounts/{account_id}/webhooks/sources";
  return [
    defineRoute({
      method: "GET",
      path,
      access: "webhooks.read",
      summary:
        "List webhook sources and whether each has a secret; `tag` filters as in the tagging interface.",
      parameters: ["tag"],
      result: z.array(sourceResult),
      handler: async ({ params, rawQuery }) => {
        const accountId = params["account_id"] ?? "";
        const tagged = await tags?.matchingIds(accountId, "webhook_source", rawQuery.getAll("tag"));
        const own = [...sources.values()].filter(
          (source) => source.accountId === accountId && (tagged == null || tagged.has(source.name)),
        );
        return { result: own.map(showSource), resultInfo: { count: own.length } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${path}/{source_name}`,
      access: "webhooks.read",
      summary: "Read one webhook source.",
      result: sourceResult,
      handler: ({ params }) => ({ result: showSource(findOwn(sources, params)) }),
    }),
    defineRoute({
      method: "POST",
      path: `${path}/{source_name}/test`,
      access: "webhooks.edit",
      summary:
        "Sign a sample delivery with the source's secret and process it as if the provider had sent it.",
      body: testBody,
      result: z.object({ status: z.number(), body: z.string(), delivery_id: z.string() }),
      handler: async ({ params, body }) => {
        const source = findOwn(sources, params);
        const deliveryId = `sample-${ulid(clock.now())}`;
        const { url, headers, body: text } = signSample(source, body, deliveryId, clock.now());
        const answer = await intake.receive({
          source,
          // A payload of the caller names its entity itself, unless `entity` is given, too.
          urlEntity: body.payload === undefined ? null : (body.entity ?? null),
          headers,
          body: Buffer.from(text),
          heldBytes: 0,
          urls: () => [url],
        });
        return { result: { status: answer.status, body: answer.body, delivery_id: deliveryId } };
      },
    }),
  ];
}

function signSample(source: Source, request: z.output<typeof testBody>, deliveryId: string, now: number) {
  const secret = source.secrets[0]?.reveal();
  if (secret === undefined) {
    throw new SignalboxError("conflict", {
      message: `Source ${source.name} has no secret: set ${source.secretVariable} and restart Signalbox`,
    });
  }
  if (source.kind.name === "discord") {
    throw new SignalboxError("conflict", {
      message: "A sample cannot be signed: only Discord has the private key that signs its deliveries",
    });
  }
  return createSampleRequest(source, {
    entity: request.entity ?? SAMPLE_ENTITY,
    secret,
    deliveryId,
    now,
    url: `https://signalbox.invalid/webhooks/${source.name}`,
    body: request.payload === undefined ? undefined : writePayload(request.payload),
    headers: lowerCaseNames(request.headers),
  });
}

/** `JSON.parse` accepts deeper nesting than `JSON.stringify`. */
function writePayload(payload: unknown): string {
  try {
    return JSON.stringify(payload);
  } catch (cause) {
    throw new SignalboxError("webhook_invalid_payload", {
      message: "The payload is nested too deeply",
      cause,
    });
  }
}

function deliveryRoutes({ sources, log, intake }: RouteParts): Route[] {
  const path = "/accounts/{account_id}/webhooks/deliveries";
  const findDelivery = async (params: Readonly<Record<string, string>>) => {
    const record = await log.find(params["account_id"] ?? "", params["delivery"] ?? "");
    if (record === undefined) throw new SignalboxError("not_found", { message: "Delivery not found" });
    return record;
  };
  return [
    defineRoute({
      method: "GET",
      path,
      access: "webhooks.read",
      summary:
        "List deliveries, newest first, with filters; with `after`, deliveries since then, oldest first.",
      query: listQuery,
      result: z.array(deliveryResult),
      handler: async ({ params, query }) => {
        const accountId = params["account_id"] ?? "";
        const { cursor, after, limit, delivery_id: deliveryId, ...rest } = query;
        const filter = { ...rest, deliveryId };
        if (after !== undefined) {
          const records = await log.since(accountId, filter, after, limit);
          return { result: records.map(showDelivery), resultInfo: { count: records.length } };
        }
        const { records, next } = await log.list(accountId, filter, cursor, limit);
        return {
          result: records.map(showDelivery),
          resultInfo: { count: records.length, cursor: next, cursors: next === null ? {} : { after: next } },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${path}/{delivery}`,
      access: "webhooks.read",
      summary: "Read one delivery with its headers and body.",
      result: deliveryDetailResult,
      handler: async ({ params }) => ({ result: deliveryDetail(await findDelivery(params)) }),
    }),
    defineRoute({
      method: "POST",
      path: `${path}/{delivery}/replay`,
      access: "webhooks.edit",
      summary: "Deliver a stored delivery to its agent again.",
      result: z.object({ status: z.string(), event_id: z.string() }),
      handler: async ({ params }) => {
        const record = await findDelivery(params);
        const source = sources.get(record.source);
        if (
          record.status === "rejected" ||
          record.instance === "" ||
          record.body === null ||
          source === undefined
        ) {
          throw new SignalboxError("conflict", {
            message: "This delivery was refused, or its body was not kept, so it cannot be replayed",
          });
        }
        // A failed delivery is not in the ledger, so it keeps its id and still runs at most once.
        const { outcome, eventId } = await intake.replay(source, record, record.status !== "failed");
        return { result: { status: outcome.kind, event_id: eventId } };
      },
    }),
  ];
}

function findOwn(sources: ReadonlyMap<string, Source>, params: Readonly<Record<string, string>>): Source {
  const source = sources.get(params["source_name"] ?? "");
  if (source === undefined || source.accountId !== params["account_id"]) {
    throw new SignalboxError("not_found", { message: "Source not found" });
  }
  return source;
}

function lowerCaseNames(headers: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

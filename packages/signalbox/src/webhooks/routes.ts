/** Management routes of webhooks: sources and samples; the routes of deliveries are in files of their own. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { ulid } from "../core/ulid.ts";
import { renderError, toSignalboxError } from "../http/render-error.ts";
import { defineRoute, type PathParams, type Route } from "../http/route.ts";
import type { TagLookup } from "../contracts/tag-lookup.ts";
import { DELIVERY_STATUSES, type DeliveryRecord } from "./delivery-record.ts";
import { type DeliveryRouteParts, deliveryRoutes } from "./delivery-routes.ts";
import { explainReason } from "./explain-delivery.ts";
import type { LateDeliveries } from "./late-deliveries.ts";
import type { LateDeliveryTable } from "./late-delivery-table.ts";
import { lateDeliveryRoutes } from "./late-delivery-routes.ts";
import {
  eventRoutes,
  exampleRoutes,
  issueRoutes,
  listenerRoutes,
  replayRoutes,
  routeRoutes,
  type Routing,
} from "./routing/index.ts";
import { createSampleRequest } from "./sample-delivery.ts";
import { sampleRoute } from "./sample-route.ts";
import { errorResult, showSource, sourceResult } from "./show.ts";
import type { Source } from "./source.ts";

export interface RouteParts extends DeliveryRouteParts {
  readonly late: LateDeliveries;
  readonly lateTable: LateDeliveryTable;
  readonly routing: Routing;
  readonly tags: TagLookup | undefined;
}

/** The entity of a sample without one. A name like a repository's suits every source. */
const SAMPLE_ENTITY = "sample/entity";

const testBody = z.strictObject({
  entity: z.string().min(1).max(512).optional(),
  /** Event type instead of the sample's. */
  type: z.string().min(1).max(256).optional(),
  /** A JSON payload instead of the sample's. */
  payload: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]).optional(),
  headers: z.record(z.string(), z.string()).optional(),
});

export function webhookRoutes(parts: RouteParts): Route[] {
  return [
    ...sourceRoutes(parts),
    ...routeRoutes(parts),
    ...deliveryRoutes(parts),
    ...lateDeliveryRoutes(parts),
    ...eventRoutes(parts),
    ...replayRoutes(parts),
    ...exampleRoutes(parts),
    ...listenerRoutes(parts),
    ...issueRoutes(parts),
  ];
}

const SOURCES = "/accounts/{account_id}/webhooks/sources";
const SOURCE = `${SOURCES}/{source_name}`;

function sourceRoutes({ sources, intake, clock, tags }: RouteParts): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: SOURCES,
      access: "webhooks.read",
      summary:
        "List webhook sources and whether each has a secret; `tag` filters as in the tagging interface.",
      parameters: ["tag"],
      repeatable: ["tag"],
      result: z.array(sourceResult),
      handler: async ({ params, rawQuery }) => {
        const { account_id: accountId } = params;
        const tagged = await tags?.matchingIds(accountId, "webhook_source", rawQuery.getAll("tag"));
        const own = [...sources.values()].filter(
          (source) => source.accountId === accountId && (tagged == null || tagged.has(source.name)),
        );
        return { result: own.map(showSource), resultInfo: { count: own.length } };
      },
    }),
    defineRoute({
      method: "GET",
      path: SOURCE,
      access: "webhooks.read",
      summary: "Read one webhook source.",
      result: sourceResult,
      handler: ({ params }) => ({ result: showSource(findOwn(sources, params)) }),
    }),
    sampleRoute({ clock, findOwn: (params) => findOwn(sources, params) }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${SOURCE}/test`,
      acceptsNul: true,
      access: "webhooks.edit",
      summary:
        "Sign a sample delivery with the source's secret and process it as if the provider had sent it.",
      body: testBody,
      result: sampleResult,
      handler: async ({ params, body }) => {
        const source = findOwn(sources, params);
        const deliveryId = `sample-${ulid(clock.now())}`;
        const { url, headers, body: text } = signSample(source, body, deliveryId, clock.now());
        let record: DeliveryRecord | null = null;
        const answered = intake.receive({
          source,
          // A payload of the caller names its entity itself, unless `entity` is given, too.
          urlEntity: body.payload === undefined ? null : (body.entity ?? null),
          headers,
          body: Buffer.from(text),
          releaseBody: () => undefined,
          urls: () => [url],
          onRecord: (made) => (record = made),
        });
        // What the provider would receive, also if the delivery was refused.
        const answer = await answered.catch((error: unknown) => {
          const known = toSignalboxError(error);
          return { status: known.status, body: renderError(known, "envelope", "").body };
        });
        return { result: showSample(answer, deliveryId, record) };
      },
    }),
  ];
}

const sampleResult = z.object({
  status: z.number(),
  body: z.string(),
  delivery_id: z.string(),
  id: z.string().nullable(),
  outcome: z.enum(DELIVERY_STATUSES).nullable(),
  reason: z.string().nullable(),
  explanation: z.string().nullable(),
  agent: z.string().nullable(),
  instance: z.string().nullable(),
  error: errorResult.nullable(),
});

function showSample(
  answer: { readonly status: number; readonly body: string },
  deliveryId: string,
  record: DeliveryRecord | null,
): z.input<typeof sampleResult> {
  return {
    status: answer.status,
    body: answer.body,
    delivery_id: record?.deliveryId || deliveryId,
    id: record?.id ?? null,
    outcome: record?.status ?? null,
    reason: record?.reason ?? null,
    explanation: explainReason(record?.reason ?? null),
    agent: record?.agent ?? null,
    instance: record?.instance || null,
    error: record?.error ?? null,
  };
}

function signSample(source: Source, request: z.output<typeof testBody>, deliveryId: string, now: number) {
  const secret = source.secrets[0]?.reveal() ?? (source.scheme.needsNoSecret === true ? "" : undefined);
  if (secret === undefined) {
    throw new SignalboxError("conflict", {
      message: `Source ${source.name} has no secret: set ${source.secretVariable} and restart Signalbox`,
    });
  }
  const { onlySigner } = source.scheme;
  if (onlySigner !== undefined) {
    throw new SignalboxError("conflict", {
      message: `A sample cannot be signed: only ${onlySigner} has the private key that signs its deliveries`,
    });
  }
  try {
    return createSampleRequest(source, {
      entity: request.entity ?? SAMPLE_ENTITY,
      secret,
      deliveryId,
      now,
      url: `https://signalbox.invalid/webhooks/${source.name}`,
      type: request.type,
      body: request.payload === undefined ? undefined : JSON.stringify(request.payload),
      headers: lowerCaseNames(request.headers),
    });
  } catch (cause) {
    throw new SignalboxError("conflict", {
      message: "A sample cannot be signed: the source has a public key, and the sender the private one",
      cause,
    });
  }
}

function findOwn(sources: ReadonlyMap<string, Source>, params: PathParams<typeof SOURCE>): Source {
  const source = sources.get(params.source_name);
  if (source === undefined || source.accountId !== params.account_id) {
    throw new SignalboxError("not_found", { message: "Source not found" });
  }
  return source;
}

function lowerCaseNames(headers: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/** The history of one resource, and the change feed of an account as pages or as an event stream. */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { TAG_LIMITS } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Reply, type Route } from "../http/route.ts";
import { decodeNumericCursor, encodeCursor, pageInfo, parseLimit, parsePosition } from "./list-query.ts";
import { parseResource } from "./payload.ts";
import { accountOfZones, allowIdentity, type TagRequest, zoneOf } from "./resource-routes.ts";
import type { ResourceTypes } from "./payload.ts";
import { changeResult, showChange } from "./show-resource.ts";
import type { ChangeLog } from "./store/change-log.ts";
import type { TagChange } from "../contracts/tag-feed.ts";

export interface ChangeRoutesParts {
  readonly log: ChangeLog;
  readonly types: ResourceTypes;
  /** Aborts when the server stops, and ends the streams. */
  readonly stopping: AbortSignal;
}

/** Proxies close idle connections; 60 seconds is a common limit. */
const HEARTBEAT_MS = 15_000;

const named = z.object({ resource_type: z.string(), resource_id: z.string(), cursor: z.string().optional() });

export function changeRoutes(parts: ChangeRoutesParts): Route[] {
  const history = {
    method: "GET",
    access: "tags.read",
    summary: "List the changes of the tags of one resource, newest first, 100 per page.",
    documents: { query: named },
    parameters: ["worker_id", "access_application_id"],
    result: z.array(changeResult),
    handler: (request: TagRequest) => readHistory(parts, request),
  } as const;
  return [
    defineRoute({ ...history, path: "/accounts/{account_id}/tags/history" }),
    defineRoute({ ...history, path: "/zones/{zone_id}/tags/history", accountOf: accountOfZones }),
    defineRoute({
      method: "GET",
      path: "/accounts/{account_id}/tags/changes",
      access: "tags.read",
      summary:
        "Read the changes of all tags after a position (`after`), oldest first. With `Accept: text/event-stream`, the response is a stream that continues with new changes.",
      documents: { query: z.object({ after: z.string().optional(), limit: z.string().optional() }) },
      result: z.array(changeResult),
      handler: (request) => {
        request.allowParameters(["after", "limit"]);
        return request.headers.accept?.includes("text/event-stream") === true
          ? streamChanges(parts, request)
          : readChanges(parts, request);
      },
    }),
  ];
}

async function readHistory(parts: ChangeRoutesParts, request: TagRequest): Promise<Reply> {
  allowIdentity(request, ["cursor"]);
  const query = request.rawQuery;
  const resource = parseResource(
    (name) => query.get(name) ?? undefined,
    parts.types,
    zoneOf(request),
    "tags_resource_required",
  );
  const before = decodeNumericCursor(query.get("cursor"), resource);
  const changes = await parts.log.history(request.params.account_id, resource, before, TAG_LIMITS.page + 1);
  const page = changes.slice(0, TAG_LIMITS.page);
  const last = changes.length > TAG_LIMITS.page ? page.at(-1) : undefined;
  const cursor = last === undefined ? null : encodeCursor(String(last.position), resource);
  return { result: page.map(showChange), resultInfo: pageInfo(page.length, cursor) };
}

async function readChanges(parts: ChangeRoutesParts, request: TagRequest): Promise<Reply> {
  const { account_id: accountId } = request.params;
  const limit = parseLimit(request.rawQuery);
  const after = await startPosition(parts, request);
  const changes = await parts.log.changes(accountId, after, limit + 1);
  const page = changes.slice(0, limit);
  // The feed continues, so the last page has a position, too.
  const position = String(page.at(-1)?.position ?? after);
  return {
    result: page.map(showChange),
    resultInfo: { count: page.length, cursor: position, has_more: changes.length > limit },
  };
}

async function streamChanges(parts: ChangeRoutesParts, request: TagRequest): Promise<Reply> {
  const { account_id: accountId } = request.params;
  const after = await startPosition(parts, request);
  // If the position has expired, this throws while a status can still be sent.
  await parts.log.changes(accountId, after, 1);
  const stream = new PassThrough();
  const closed = new AbortController();
  stream.once("close", () => closed.abort());
  const signal = AbortSignal.any([closed.signal, request.signal, parts.stopping]);
  void writeEvents(parts.log.follow(accountId, after, signal), stream, signal);
  return {
    raw: { contentType: "text/event-stream", body: stream },
    headers: { "cache-control": "no-store" },
  };
}

/** Writes events with back-pressure until the signal aborts. An error destroys the stream; the client reconnects with `Last-Event-ID`. */
async function writeEvents(
  changes: AsyncIterable<TagChange>,
  stream: PassThrough,
  signal: AbortSignal,
): Promise<void> {
  const heartbeat = setInterval(() => {
    if (!stream.writableNeedDrain) stream.write(":\n\n");
  }, HEARTBEAT_MS);
  try {
    // The first bytes make the client's connection open even if there are no changes.
    stream.write(":\n\n");
    for await (const change of changes) {
      const event = `id: ${change.position}\nevent: change\ndata: ${JSON.stringify(showChange(change))}\n\n`;
      if (!stream.write(event)) await once(stream, "drain", { signal });
    }
    stream.end();
  } catch (error) {
    if (signal.aborted) stream.end();
    else stream.destroy(error as Error);
  } finally {
    clearInterval(heartbeat);
  }
}

/** The start position: `Last-Event-ID` of a reconnecting client, otherwise `after`, otherwise the oldest change that is kept. */
async function startPosition(parts: ChangeRoutesParts, request: TagRequest): Promise<number> {
  const { account_id: accountId } = request.params;
  const lastEventId = request.headers["last-event-id"];
  const given =
    parsePosition(typeof lastEventId === "string" ? lastEventId : null, "Last-Event-ID") ??
    parsePosition(request.rawQuery.get("after"), "after");
  if (given === "newest") return parts.log.newestPosition(accountId);
  return given ?? parts.log.oldestPosition(accountId);
}

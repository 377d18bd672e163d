/** Who changed what and when: the history of one resource, and the account's feed of changes, read in pages or followed as a stream. */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { TAG_LIMITS } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Reply, type Route, type RouteRequest } from "../http/route.ts";
import { decodeNumericCursor, encodeCursor, pageInfo, parseLimit, parsePosition } from "./list-query.ts";
import { parseResource } from "./payload.ts";
import { accountOfZones, allowNaming, zoneOf } from "./resource-routes.ts";
import type { ResourceTypes } from "./payload.ts";
import { changeResult, showChange } from "./show-resource.ts";
import type { ChangeLog } from "./store/change-log.ts";

export interface ChangeRoutesParts {
  readonly log: ChangeLog;
  readonly types: ResourceTypes;
  /** Aborts when the server stops: streams end then, so that it can. */
  readonly stopping: AbortSignal;
}

/** Keeps proxies from closing a stream on which nothing happens. */
const HEARTBEAT_MS = 15_000;

const named = z.object({ resource_type: z.string(), resource_id: z.string(), cursor: z.string().optional() });

export function changeRoutes(parts: ChangeRoutesParts): Route[] {
  const history = {
    method: "GET",
    access: "tags.read",
    summary: "List the changes of one resource's tags, newest first, 100 a page.",
    documents: { query: named },
    parameters: ["worker_id", "access_application_id"],
    result: z.array(changeResult),
    handler: (request: RouteRequest) => readHistory(parts, request),
  } as const;
  return [
    defineRoute({ ...history, path: "/accounts/{account_id}/tags/history" }),
    defineRoute({ ...history, path: "/zones/{zone_id}/tags/history", accountOf: accountOfZones }),
    defineRoute({
      method: "GET",
      path: "/accounts/{account_id}/tags/changes",
      access: "tags.read",
      summary:
        "Read the changes of all tags after a position (`after`), oldest first; with `Accept: text/event-stream` as a stream that goes on.",
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

async function readHistory(parts: ChangeRoutesParts, request: RouteRequest): Promise<Reply> {
  allowNaming(request, ["cursor"]);
  const query = request.rawQuery;
  const resource = parseResource(
    (name) => query.get(name) ?? undefined,
    parts.types,
    zoneOf(request),
    "tags_resource_required",
  );
  const before = decodeNumericCursor(query.get("cursor"), resource);
  const changes = await parts.log.history(
    request.params["account_id"] ?? "",
    resource,
    before,
    TAG_LIMITS.page + 1,
  );
  const page = changes.slice(0, TAG_LIMITS.page);
  const last = changes.length > TAG_LIMITS.page ? page.at(-1) : undefined;
  const cursor = last === undefined ? null : encodeCursor(String(last.position), resource);
  return { result: page.map(showChange), resultInfo: pageInfo(page.length, cursor) };
}

async function readChanges(parts: ChangeRoutesParts, request: RouteRequest): Promise<Reply> {
  const accountId = request.params["account_id"] ?? "";
  const limit = parseLimit(request.rawQuery);
  const after = await startOf(parts, request);
  const changes = await parts.log.changes(accountId, after, limit + 1);
  const page = changes.slice(0, limit);
  // A feed has no end: there is always a position to come back with.
  const position = String(page.at(-1)?.position ?? after);
  return {
    result: page.map(showChange),
    resultInfo: { count: page.length, cursor: position, has_more: changes.length > limit },
  };
}

async function streamChanges(parts: ChangeRoutesParts, request: RouteRequest): Promise<Reply> {
  const accountId = request.params["account_id"] ?? "";
  const after = await startOf(parts, request);
  // Fails here, with a status, when the position is too old; a stream could only break off.
  await parts.log.changes(accountId, after, 1);
  const stream = new PassThrough();
  const closed = new AbortController();
  stream.once("close", () => closed.abort());
  const signal = AbortSignal.any([closed.signal, request.signal, parts.stopping]);
  void pump(parts.log, accountId, after, stream, signal);
  return {
    raw: { contentType: "text/event-stream", body: stream },
    headers: { "cache-control": "no-store" },
  };
}

/** Writes events at the reader's pace until the signal aborts; a failure breaks the stream off, and the reader comes back with its last id. */
async function pump(
  log: ChangeLog,
  accountId: string,
  after: number,
  stream: PassThrough,
  signal: AbortSignal,
): Promise<void> {
  const heartbeat = setInterval(() => {
    if (!stream.writableNeedDrain) stream.write(":\n\n");
  }, HEARTBEAT_MS);
  try {
    // Tells the reader at once that it is connected.
    stream.write(":\n\n");
    for await (const change of log.follow(accountId, after, signal)) {
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

/** Where to start: the last event a returning stream has seen, else `after`, else the oldest change that is kept. */
async function startOf(parts: ChangeRoutesParts, request: RouteRequest): Promise<number> {
  const accountId = request.params["account_id"] ?? "";
  const seen = request.headers["last-event-id"];
  const given =
    parsePosition(typeof seen === "string" ? seen : null, "Last-Event-ID") ??
    parsePosition(request.rawQuery.get("after"), "after");
  if (given === "newest") return parts.log.newestPosition(accountId);
  return given ?? parts.log.oldestPosition(accountId);
}

/** Lists over an account: resources by filter, keys, values of a key, and the summary of both. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { checkTagKey, SignalboxError, TAG_LIMITS } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Reply, type Route, type RouteRequest } from "../http/route.ts";
import {
  decodeCursor,
  decodeNumericCursor,
  encodeCursor,
  pageInfo,
  parseAmong,
  parseFlag,
  parsePrefix,
  parseResourceQuery,
  wantsTotal,
} from "./list-query.ts";
import type { ResourceTypes } from "./payload.ts";
import { resourceJson, resourceResult } from "./show-resource.ts";
import type { TagReader } from "./store/tag-reader.ts";
import type { VocabularyEntry } from "./store/tag-vocabulary.ts";
import type { Vocabularies } from "./store/vocabularies.ts";

export interface ListRoutesParts {
  readonly reader: TagReader;
  readonly vocabulary: Vocabularies;
  readonly types: ResourceTypes;
}

/** Values the summary shows of one key; a key with more says so and has its own list. */
const SUMMARY_VALUES = 1000;

const base = "/accounts/{account_id}/tags";
const paging = z.object({ cursor: z.string().optional() });
const wording = paging.extend({
  tag: z.array(z.string()).optional(),
  case_insensitive: z.enum(["true", "false"]).optional(),
  prefix: z.string().optional(),
  counts: z.enum(["true", "false"]).optional(),
});

const RESOURCE_PARAMETERS = ["tag", "type", "id", "name", "case_insensitive", "total", "cursor"];
const KEY_PARAMETERS = ["tag", "case_insensitive", "prefix", "counts", "cursor"];
const VALUE_PARAMETERS = [...KEY_PARAMETERS, "type"];

export function listRoutes(parts: ListRoutesParts): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: `${base}/resources`,
      access: "tags.read",
      summary: "List resources by tags (`tag`, repeatable), `type`, `id` and `name`, 100 a page.",
      documents: {
        query: paging.extend({
          tag: z.array(z.string()).optional(),
          type: z.array(z.string()).optional(),
          id: z.array(z.string()).optional(),
          name: z.string().optional(),
          case_insensitive: z.enum(["true", "false"]).optional(),
          total: z.literal("exact").optional(),
        }),
      },
      result: z.array(resourceResult),
      handler: (request) => listResources(parts, request),
    }),
    defineRoute({
      method: "GET",
      path: `${base}/keys`,
      access: "tags.read",
      summary:
        "List the tag keys in use, of all resources or of those that `tag` finds, in order, 100 a page; `prefix` completes, `counts=true` counts.",
      documents: { query: wording },
      result: z.array(z.union([z.string(), z.object({ key: z.string(), count: z.int() })])),
      handler: (request) => listKeys(parts, request),
    }),
    // Clients build the path of an empty key with or without its slash.
    ...[`${base}/values`, `${base}/values/{tag_key}`].map((path) =>
      defineRoute({
        method: "GET",
        path,
        access: "tags.read",
        summary:
          "List the values of a tag key, in order, 100 a page; `tag` and `type` restrict the resources they are taken from.",
        documents: { query: wording.extend({ type: z.string().optional() }) },
        result: z.array(z.union([z.string(), z.object({ value: z.string(), count: z.int() })])),
        handler: (request: RouteRequest) => listValues(parts, request),
      }),
    ),
    defineRoute({
      method: "GET",
      path: `${base}/summary`,
      access: "tags.read",
      summary:
        "List the tag keys in use with their values, 100 keys a page; `tag` restricts the resources they are taken from.",
      documents: { query: wording },
      result: z.array(z.object({ key: z.string(), values: z.array(z.string()) })),
      handler: (request) => summarise(parts, request),
    }),
  ];
}

async function listResources(parts: ListRoutesParts, request: RouteRequest): Promise<Reply> {
  const accountId = request.params["account_id"] ?? "";
  request.allowParameters(RESOURCE_PARAMETERS);
  const query = parseResourceQuery(request.rawQuery, parts.types);
  const after = decodeNumericCursor(request.rawQuery.get("cursor"), query) ?? -1;
  const needsTotal = wantsTotal(request.rawQuery);
  const page = await parts.reader.list(accountId, query, after, TAG_LIMITS.page);
  const cursor = page.next === null ? null : encodeCursor(String(page.next), query);
  const info = pageInfo(page.resources.length, cursor);
  return {
    resultJson: `[${page.resources.map(resourceJson).join(",")}]`,
    resultInfo: needsTotal ? { ...info, total_count: await parts.reader.total(accountId, query) } : info,
  };
}

async function listKeys(parts: ListRoutesParts, request: RouteRequest): Promise<Reply> {
  request.allowParameters(KEY_PARAMETERS);
  const among = parseAmong(request.rawQuery, []);
  const prefix = parsePrefix(request.rawQuery);
  const words = parts.vocabulary.among(among, () => request.signal);
  return showWords(request, { list: "keys", prefix, among }, "key", (after, limit) =>
    words.keys(request.params["account_id"] ?? "", { prefix, after, limit }),
  );
}

async function listValues(parts: ListRoutesParts, request: RouteRequest): Promise<Reply> {
  request.allowParameters(VALUE_PARAMETERS);
  const key = request.params["tag_key"] ?? "";
  if (key === "") throw new SignalboxError("tags_key_required");
  checkTagKey(key);
  const type = request.rawQuery.get("type");
  if (type !== null) parts.types.require(type, false);
  const among = parseAmong(request.rawQuery, type === null ? [] : [type]);
  const prefix = parsePrefix(request.rawQuery);
  const words = parts.vocabulary.among(among, () => request.signal);
  return showWords(request, { list: "values", key, type, prefix, among }, "value", (after, limit) =>
    words.values(request.params["account_id"] ?? "", key, type, { prefix, after, limit }),
  );
}

async function showWords(
  request: RouteRequest,
  list: object,
  member: "key" | "value",
  read: (after: Uint8Array | null, limit: number) => Promise<VocabularyEntry[]>,
): Promise<Reply> {
  const hasCounts = parseFlag(request.rawQuery, "counts");
  const { page, cursor } = await readWords(request, list, read);
  return {
    result: page.map(({ text, uses }) => (hasCounts ? { [member]: text, count: uses } : text)),
    resultInfo: pageInfo(page.length, cursor),
  };
}

async function readWords(
  request: RouteRequest,
  list: object,
  read: (after: Uint8Array | null, limit: number) => Promise<VocabularyEntry[]>,
): Promise<{ page: VocabularyEntry[]; cursor: string | null }> {
  const position = decodeCursor(request.rawQuery.get("cursor"), list);
  const entries = await read(
    position === null ? null : Buffer.from(position, "base64url"),
    TAG_LIMITS.page + 1,
  );
  const page = entries.slice(0, TAG_LIMITS.page);
  const last = entries.length > TAG_LIMITS.page ? page.at(-1) : undefined;
  const cursor =
    last === undefined ? null : encodeCursor(Buffer.from(last.sortKey).toString("base64url"), list);
  return { page, cursor };
}

async function summarise(parts: ListRoutesParts, request: RouteRequest): Promise<Reply> {
  request.allowParameters(KEY_PARAMETERS);
  const accountId = request.params["account_id"] ?? "";
  const among = parseAmong(request.rawQuery, []);
  const words = parts.vocabulary.among(among, () => request.signal);
  const prefix = parsePrefix(request.rawQuery);
  const hasCounts = parseFlag(request.rawQuery, "counts");
  const { page, cursor } = await readWords(request, { list: "summary", prefix, among }, (after, limit) =>
    words.keys(accountId, { prefix, after, limit }),
  );
  const result: object[] = [];
  for (const { text, uses } of page) {
    // A hundred keys with a thousand values each are many rows; others get their turn in between.
    await nextTurn();
    const values = await words.values(accountId, text, null, {
      prefix: "",
      after: null,
      limit: SUMMARY_VALUES + 1,
    });
    const shown = values.slice(0, SUMMARY_VALUES);
    result.push({
      key: text,
      values: shown.map((value) => (hasCounts ? { value: value.text, count: value.uses } : value.text)),
      ...(hasCounts ? { count: uses } : {}),
      ...(values.length > SUMMARY_VALUES ? { has_more_values: true } : {}),
    });
  }
  return { result, resultInfo: pageInfo(page.length, cursor) };
}

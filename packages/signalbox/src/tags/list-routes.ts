/** Lists of an account: resources by filter, keys, values of a key, and keys with their values (summary). */
import { checkTagKey, SignalboxError, TAG_LIMITS } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type PathParams, type Reply, type Route, type RouteRequest } from "../http/route.ts";
import {
  decodeCursor,
  decodeNumericCursor,
  encodeCursor,
  pageInfo,
  parseVocabularyQuery,
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
  readonly vocabularies: Vocabularies;
  readonly types: ResourceTypes;
}

/** Values of one key in the summary. A key with more values has `has_more_values`; the list of its values has all. */
const SUMMARY_VALUES = 1000;

const base = "/accounts/{account_id}/tags";

type ListRequest = RouteRequest<unknown, unknown, PathParams<typeof base>>;
/** Without a key in the path the key is empty. */
type ValuesRequest = RouteRequest<unknown, unknown, PathParams<typeof base> & { readonly tag_key?: string }>;

const paging = z.object({ cursor: z.string().optional() });
const vocabularyParameters = paging.extend({
  tag: z.array(z.string()).optional(),
  case_insensitive: z.enum(["true", "false"]).optional(),
  prefix: z.string().optional(),
  counts: z.enum(["true", "false"]).optional(),
});

const RESOURCE_PARAMETERS = ["tag", "type", "id", "name", "case_insensitive", "total", "cursor"];
const KEY_PARAMETERS = ["tag", "case_insensitive", "prefix", "counts", "cursor"];
const VALUE_PARAMETERS = [...KEY_PARAMETERS, "type"];

export function listRoutes(parts: ListRoutesParts): Route[] {
  const values = {
    method: "GET",
    access: "tags.read",
    summary:
      "List the values of a tag key, sorted, 100 per page. `tag` and `type` restrict the resources, `prefix` the values.",
    documents: { query: vocabularyParameters.extend({ type: z.array(z.string()).optional() }) },
    result: z.array(z.union([z.string(), z.object({ value: z.string(), count: z.int() })])),
    handler: (request: ValuesRequest) => listValues(parts, request),
  } as const;
  return [
    defineRoute({
      method: "GET",
      path: `${base}/resources`,
      access: "tags.read",
      summary: "List resources by tags (`tag`, repeatable), `type`, `id` and `name`, 100 per page.",
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
        "List the tag keys in use, sorted, 100 per page. `tag` restricts the resources, `prefix` the keys; `counts=true` adds the number of resources.",
      documents: { query: vocabularyParameters },
      result: z.array(z.union([z.string(), z.object({ key: z.string(), count: z.int() })])),
      handler: (request) => listKeys(parts, request),
    }),
    // For an empty key, some clients omit the last slash.
    defineRoute({ ...values, path: `${base}/values` }),
    defineRoute({ ...values, path: `${base}/values/{tag_key}` }),
    defineRoute({
      method: "GET",
      path: `${base}/summary`,
      access: "tags.read",
      summary:
        "List the tag keys in use with their values, 100 keys per page. `tag` restricts the resources.",
      documents: { query: vocabularyParameters },
      result: z.array(z.object({ key: z.string(), values: z.array(z.string()) })),
      handler: (request) => summarize(parts, request),
    }),
  ];
}

async function listResources(parts: ListRoutesParts, request: ListRequest): Promise<Reply> {
  const { account_id: accountId } = request.params;
  request.allowParameters(RESOURCE_PARAMETERS);
  const query = parseResourceQuery(request.rawQuery, parts.types);
  const after = decodeNumericCursor(request.rawQuery.get("cursor"), query) ?? -1;
  const needsTotal = wantsTotal(request.rawQuery);
  const page = await parts.reader.list(accountId, query, after, TAG_LIMITS.page, request.signal);
  const cursor = page.next === null ? null : encodeCursor(String(page.next), query);
  const info = pageInfo(page.resources.length, cursor);
  return {
    resultJson: `[${page.resources.map(resourceJson).join(",")}]`,
    resultInfo: needsTotal
      ? { ...info, total_count: await parts.reader.total(accountId, query, request.signal) }
      : info,
  };
}

async function listKeys(parts: ListRoutesParts, request: ListRequest): Promise<Reply> {
  request.allowParameters(KEY_PARAMETERS);
  const resources = parseVocabularyQuery(request.rawQuery, []);
  const prefix = parsePrefix(request.rawQuery);
  const vocabulary = parts.vocabularies.of(resources, () => request.signal);
  return listEntries(request, { list: "keys", prefix, among: resources }, "key", (after, limit) =>
    vocabulary.keys(request.params.account_id, { prefix, after, limit }),
  );
}

async function listValues(parts: ListRoutesParts, request: ValuesRequest): Promise<Reply> {
  request.allowParameters(VALUE_PARAMETERS);
  const { account_id: accountId, tag_key: key = "" } = request.params;
  if (key === "") throw new SignalboxError("tags_key_required");
  checkTagKey(key);
  const types = [...new Set(request.rawQuery.getAll("type"))];
  for (const one of types) parts.types.require(one, false);
  const type = types.length === 1 ? (types[0] ?? null) : null;
  const resources = parseVocabularyQuery(request.rawQuery, types);
  const prefix = parsePrefix(request.rawQuery);
  const vocabulary = parts.vocabularies.of(resources, () => request.signal);
  return listEntries(
    request,
    { list: "values", key, type, prefix, among: resources },
    "value",
    (after, limit) => vocabulary.values(accountId, key, type, { prefix, after, limit }),
  );
}

async function listEntries(
  request: ListRequest,
  list: object,
  member: "key" | "value",
  read: (after: Uint8Array | null, limit: number) => Promise<VocabularyEntry[]>,
): Promise<Reply> {
  const hasCounts = parseFlag(request.rawQuery, "counts");
  const { page, cursor } = await readEntries(request, list, read);
  return {
    result: page.map(({ text, uses }) => (hasCounts ? { [member]: text, count: uses } : text)),
    resultInfo: pageInfo(page.length, cursor),
  };
}

async function readEntries(
  request: ListRequest,
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

async function summarize(parts: ListRoutesParts, request: ListRequest): Promise<Reply> {
  request.allowParameters(KEY_PARAMETERS);
  const { account_id: accountId } = request.params;
  const resources = parseVocabularyQuery(request.rawQuery, []);
  const vocabulary = parts.vocabularies.of(resources, () => request.signal);
  const prefix = parsePrefix(request.rawQuery);
  const hasCounts = parseFlag(request.rawQuery, "counts");
  const { page, cursor } = await readEntries(
    request,
    { list: "summary", prefix, among: resources },
    (after, limit) => vocabulary.keys(accountId, { prefix, after, limit }),
  );
  const result: object[] = [];
  for (const { text, uses } of page) {
    // A page can read 100,000 rows.
    await parts.reader.turn(accountId);
    if (request.signal.aborted) break;
    const values = await vocabulary.values(accountId, text, null, {
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

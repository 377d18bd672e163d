/** The log interface: the stored calls of a gateway in the shape that `aiGateway.logs` of the public `cloudflare` SDK expects. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { INERT_HEADERS } from "../../http/foreign-answer.ts";
import { defineRoute, type PathParams, type Reply, type Route } from "../../http/route.ts";
import type {
  BodySide,
  CallLog,
  CallOrder,
  CallPatch,
  CallRanges,
  CallRow,
  GatewayRef,
} from "../../engines/call-log/index.ts";
import { callDetail, HEAD_BYTES, showCallDetail } from "./call-detail.ts";
import { callResult, ORDER_KEYS, showCall } from "./call-fields.ts";
import { FILTER_PARTS, parseSelection } from "./parse-selection.ts";
import type { LogReads } from "./log-reads.ts";
import { unreadableMessages } from "./unreadable-days.ts";

const PATH = "/accounts/{account_id}/ai-gateway/gateways/{gateway_id}/logs";
const ONE = `${PATH}/{id}`;

const MAX_PER_PAGE = 1000;
/** The rows before a page are skipped one by one; a filter on `created_at` or `id` is faster for deeper pages. */
const MAX_OFFSET = 1_000_000;
const MAX_METADATA_KEYS = 32;

export interface CallLogRouteParts {
  readonly callLog: CallLog;
  readonly reads: LogReads;
  readonly gatewayExists: (accountId: string, gatewayId: string) => boolean;
}

/** For the documentation: `parseSelection` reads these parameters, because they may be repeated. */
const selection = {
  search: z.string().max(256).optional(),
  "filters.key": z.string().optional(),
  "filters.operator": z.string().optional(),
  "filters.value": z.string().optional(),
};
const orderParameters = {
  order_by: z.enum(Object.keys(ORDER_KEYS) as [string, ...string[]]).default("created_at"),
  order_by_direction: z.enum(["asc", "desc"]).optional(),
  /** Older name of `order_by_direction`. */
  direction: z.enum(["asc", "desc"]).optional(),
};
const listQuery = z.object({
  ...selection,
  ...orderParameters,
  page: z.coerce.number().int().min(1).default(1),
  per_page: z.coerce.number().int().min(1).max(MAX_PER_PAGE).default(20),
  /** Adds the ranges of cost, duration and token counts over all pages to `result_info`. */
  meta_info: z.enum(["true", "false"]).optional(),
});
const deleteQuery = z.object({
  ...selection,
  ...orderParameters,
  limit: z.coerce.number().int().min(1).optional(),
});

const metadataValue = z.union([z.string().max(4096), z.number(), z.boolean(), z.null()]);
const patchBody = z.strictObject({
  feedback: z.union([z.literal(-1), z.literal(1), z.null()], "must be -1, 1 or null").optional(),
  score: z.number().nullable().optional(),
  metadata: z
    .record(z.string().min(1).max(256), metadataValue)
    .refine((value) => Object.keys(value).length <= MAX_METADATA_KEYS, `at most ${MAX_METADATA_KEYS} keys`)
    .nullable()
    .optional(),
});

export function callLogRoutes(parts: CallLogRouteParts): Route[] {
  return [
    listRoute(parts),
    deleteRoute(parts),
    detailRoute(parts),
    editRoute(parts),
    bodyRoute(parts, "request"),
    bodyRoute(parts, "response"),
  ];
}

function listRoute(parts: CallLogRouteParts): Route {
  const { reads } = parts;
  return defineRoute({
    method: "GET",
    path: PATH,
    access: "gateway.read",
    summary:
      "List stored calls, newest first; `filters`, `search` (in metadata), `order_by`, `order_by_direction`, `page`, `per_page`.",
    query: listQuery,
    parameters: "handler",
    repeatable: FILTER_PARTS,
    result: z.array(callResult),
    handler: async ({ params, query, rawQuery }) => {
      const gateway = findGateway(parts, params);
      const offset = (query.page - 1) * query.per_page;
      if (offset > MAX_OFFSET) {
        throw new SignalboxError("invalid_request", {
          message: "page: too deep, narrow the list by created_at instead",
        });
      }
      const selection = parseSelection(rawQuery, Object.keys(listQuery.shape));
      const page = { ...selection, ...orderOf(query), offset, limit: query.per_page };
      const { rows, total } = await reads.list(gateway, page);
      const ranges = query.meta_info === "true" ? showRanges(await reads.ranges(gateway, selection)) : {};
      return {
        result: rows.map(showCall),
        resultInfo: {
          page: query.page,
          per_page: query.per_page,
          count: rows.length,
          total_count: total,
          total_pages: Math.ceil(total / query.per_page),
          ...ranges,
        },
        messages: unreadableMessages(reads),
      };
    },
  });
}

function deleteRoute(parts: CallLogRouteParts): Route {
  return defineRoute({
    method: "DELETE",
    path: PATH,
    access: "gateway.edit",
    summary:
      "Delete the stored calls that match; without filters, all. `limit` deletes the first ones in the order.",
    query: deleteQuery,
    parameters: "handler",
    repeatable: FILTER_PARTS,
    result: z.object({ deleted: z.number() }),
    handler: async ({ params, query, rawQuery }) => {
      const deleted = await parts.callLog.delete(findGateway(parts, params), {
        ...parseSelection(rawQuery, Object.keys(deleteQuery.shape)),
        ...orderOf(query),
        limit: query.limit ?? null,
      });
      return { result: { deleted }, messages: unreadableMessages(parts.callLog) };
    },
  });
}

function detailRoute(parts: CallLogRouteParts): Route {
  const { callLog } = parts;
  return defineRoute({
    method: "GET",
    path: ONE,
    access: "gateway.read",
    summary: "Read one stored call, with the beginning of its bodies.",
    result: callDetail,
    handler: async ({ params }) => {
      const gateway = findGateway(parts, params);
      const { id } = params;
      const row = await callLog.get(gateway, id);
      if (row === null) throw callMissing();
      const [request, response] = await Promise.all([
        row.hasRequestBody ? callLog.body(gateway, id, "request", HEAD_BYTES) : null,
        row.hasResponseBody ? callLog.body(gateway, id, "response", HEAD_BYTES) : null,
      ]);
      return { result: showCallDetail(row, request, response) };
    },
  });
}

function editRoute(parts: CallLogRouteParts): Route {
  const { callLog } = parts;
  return defineRoute({
    method: "PATCH",
    path: ONE,
    access: "gateway.edit",
    summary: "Set the feedback, score or metadata of a stored call; null clears a value.",
    body: patchBody,
    result: callResult,
    handler: async ({ params, body }) => {
      const gateway = findGateway(parts, params);
      const { id } = params;
      const row = (await callLog.edit(gateway, id, toPatch(body))) ? await callLog.get(gateway, id) : null;
      if (row === null) throw callMissing();
      return { result: showCall(row) };
    },
  });
}

function bodyRoute(parts: CallLogRouteParts, side: BodySide): Route {
  const { callLog } = parts;
  return defineRoute({
    method: "GET",
    path: `${ONE}/${side}`,
    access: "gateway.read",
    summary: `The ${side} body of a stored call, as it was sent; not in the envelope.`,
    handler: async ({ params }): Promise<Reply> => {
      const gateway = findGateway(parts, params);
      const { id } = params;
      const body = await callLog.body(gateway, id, side);
      if (body === null) throw bodyMissing(await callLog.get(gateway, id), side);
      return {
        // Stored bodies are untrusted and have the dashboard's origin: a browser must not run them.
        headers: {
          ...INERT_HEADERS,
          "cache-control": "no-store",
          "gw-aig-body-complete": String(body.isComplete),
        },
        raw: { contentType: servableType(body.contentType), body: Buffer.from(body.bytes) },
      };
    },
  });
}

function findGateway(parts: CallLogRouteParts, params: PathParams<typeof PATH>): GatewayRef {
  const gateway = { accountId: params.account_id, gatewayId: params.gateway_id };
  if (!parts.gatewayExists(gateway.accountId, gateway.gatewayId)) {
    throw new SignalboxError("not_found", { message: "Gateway not found" });
  }
  return gateway;
}

function servableType(contentType: string): string {
  return /^[\x21-\x7e][\x20-\x7e]*$/.test(contentType) ? contentType : "application/octet-stream";
}

function bodyMissing(row: CallRow | null, side: BodySide): SignalboxError {
  const wasStored = side === "request" ? row?.hasRequestBody : row?.hasResponseBody;
  return new SignalboxError("not_found", {
    message:
      wasStored === true
        ? `The ${side} body of this call was removed, to keep stored calls within gateway.logs.maxTotalBytes`
        : `No ${side} body is stored for this call`,
  });
}

function callMissing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Log not found" });
}

function orderOf(query: {
  readonly order_by: string;
  readonly order_by_direction?: "asc" | "desc" | undefined;
  readonly direction?: "asc" | "desc" | undefined;
}): { orderBy: CallOrder; direction: "asc" | "desc" } {
  return {
    orderBy: ORDER_KEYS[query.order_by] ?? "createdAt",
    direction: query.order_by_direction ?? query.direction ?? "desc",
  };
}

function toPatch(body: z.output<typeof patchBody>): CallPatch {
  const { feedback, score, metadata } = body;
  return {
    ...(feedback === undefined ? {} : { feedback }),
    ...(score === undefined ? {} : { score }),
    ...(metadata === undefined ? {} : { metadata: metadata === null ? null : JSON.stringify(metadata) }),
  };
}

function showRanges(ranges: CallRanges): Record<string, number | null> {
  const { cost, durationMs, tokensIn, tokensOut, tokens } = ranges;
  return {
    min_cost: cost.min,
    max_cost: cost.max,
    min_duration: durationMs.min,
    max_duration: durationMs.max,
    min_tokens_in: tokensIn.min,
    max_tokens_in: tokensIn.max,
    min_tokens_out: tokensOut.min,
    max_tokens_out: tokensOut.max,
    min_total_tokens: tokens.min,
    max_total_tokens: tokens.max,
  };
}
